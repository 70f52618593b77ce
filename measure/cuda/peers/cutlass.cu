// CUTLASS's own Hopper kernels, as its collective builder makes them, behind the functions that measure/peers.py calls.
// SCHEDULE is 0 for two warpgroups on one tile, 1 for two on tiles of their own ("ping-pong"). Row-major A, B and C.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

using namespace cute;
using Element = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
constexpr int ALIGNED = 8;

template <class Tile, class Cluster, class MainSchedule, class EndSchedule>
struct Kernel {
    using End = typename cutlass::epilogue::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
        cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row, ALIGNED, Element, Row, ALIGNED,
        EndSchedule>::CollectiveOp;
    using Main = typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, Row, ALIGNED, Element, Row, ALIGNED, float, Tile,
        Cluster, cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename End::SharedStorage))>,
        MainSchedule>::CollectiveOp;
    using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
        cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Main, End>>;
};

#if SCHEDULE == 0
using Gemm = Kernel<Shape<_128, _256, _64>, Shape<_2, _1, _1>, cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                    cutlass::epilogue::TmaWarpSpecializedCooperative>::Gemm;
#define SHAPE "cooperative, 128 x 256 x 64, 2 x 1"
#else
using Gemm = Kernel<Shape<_64, _256, _64>, Shape<_2, _1, _1>, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
                    cutlass::epilogue::TmaWarpSpecialized>::Gemm;
#define SHAPE "ping-pong, 64 x 256 x 64, 2 x 1"
#endif

constexpr int SWIZZLES[] = {1, 4, 8};
constexpr const char* SETTINGS[] = {SHAPE ", swizzle 1", SHAPE ", swizzle 4", SHAPE ", swizzle 8"};

struct Plan {
    Gemm gemm;
    void* workspace;
};

extern "C" const char* peer_setting(int number) { return number < 3 ? SETTINGS[number] : nullptr; }

extern "C" Plan* peer_plan(int number, Element* a, Element* b, Element* c, int m, int n, int k) {
    using Inside = typename Gemm::GemmKernel;
    typename Gemm::Arguments given{cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1}, {}, {}};
    given.mainloop = {a, cutlass::make_cute_packed_stride(typename Inside::StrideA{}, make_shape(m, k, 1)), b,
                      cutlass::make_cute_packed_stride(typename Inside::StrideB{}, make_shape(n, k, 1))};
    given.epilogue = {{1.0f, 0.0f}, nullptr, {}, c,
                      cutlass::make_cute_packed_stride(typename Inside::StrideD{}, make_shape(m, n, 1))};
    given.hw_info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
    given.scheduler.max_swizzle_size = SWIZZLES[number];
    Plan* plan = new Plan{};
    cudaMalloc(&plan->workspace, Gemm::get_workspace_size(given) + 16);
    if (plan->gemm.initialize(given, plan->workspace) != cutlass::Status::kSuccess) return nullptr;
    return plan;
}

extern "C" int peer_run(Plan* plan, cudaStream_t stream) { return int(plan->gemm.run(stream)); }
