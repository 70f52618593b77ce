// What sm_100 adds for tiles by turns, one wrapper each (PTX ISA 9, clusterlaunchcontrol): a cluster asks for one that has not
// begun, which then never begins, and computes its tile instead. The answer is 16 bytes at the same place in each block of
// the cluster, where they count at a barrier.
#pragma once

__device__ __forceinline__ void ask_for_cluster(unsigned answer, unsigned barrier) {
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%0], [%1];" ::"r"(answer),
        "r"(barrier)
        : "memory");
}

// The number (x) of the first block of the cluster that will not begin; -1 if all have begun.
__device__ __forceinline__ int cluster_taken_over(unsigned answer) {
    int first = -1;
    asm volatile(
        "{\n"
        ".reg .pred taken;\n"
        ".reg .b128 answer;\n"
        "ld.shared.b128 answer, [%1];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 taken, answer;\n"
        "@taken clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, answer;\n"
        "}\n"
        : "+r"(first)
        : "r"(answer)
        : "memory");
    return first;
}
