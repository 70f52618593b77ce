// What blocks of a cluster send one another, beside what hopper.cuh has. Section numbers are those of the PTX ISA 9.
#pragma once
#include "hopper.cuh"

// The two halves of cluster_sync, for what can be done in between.
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Four floats to the place that `shared` has in block `rank`; their 16 bytes count at its `barrier` when they have
// landed. 9.7.9.12: st.async.
__device__ __forceinline__ void store4_async(unsigned shared, const float (&v)[4], unsigned barrier, unsigned rank) {
    unsigned remote, remote_barrier;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_barrier) : "r"(barrier), "r"(rank));
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(remote),
        "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(remote_barrier)
        : "memory");
}

__device__ __forceinline__ float4 load4_shared(unsigned shared) {  // 9.7.9.8: ld.shared
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(shared)
                 : "memory");
    return v;
}
