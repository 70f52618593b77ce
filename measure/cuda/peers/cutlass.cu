// CUTLASS's own Hopper kernels, as its collective builder makes them, behind the functions that measure/peers.py calls. A
// build is of one TILE_M x TILE_N x 64, of one cluster of CLUSTER_M x CLUSTER_N blocks and of one layout of B (B_BY_K: k is
// contiguous). PINGPONG: the two warpgroups have tiles of their own, not halves of one. STREAM_K: tiles are cut along k
// where they do not fill the last round of blocks.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>
#include <cutlass/util/packed_stride.hpp>

using namespace cute;
using Element = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using LayoutB = std::conditional_t<B_BY_K, cutlass::layout::ColumnMajor, Row>;
using TileShape = Shape<Int<TILE_M>, Int<TILE_N>, _64>;
using ClusterShape = Shape<Int<CLUSTER_M>, Int<CLUSTER_N>, _1>;
using MainSchedule = std::conditional_t<PINGPONG, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
                                        cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
using EndSchedule = std::conditional_t<PINGPONG, cutlass::epilogue::TmaWarpSpecialized,
                                       cutlass::epilogue::TmaWarpSpecializedCooperative>;
using Scheduler = std::conditional_t<STREAM_K, cutlass::gemm::StreamKScheduler, cutlass::gemm::PersistentScheduler>;
constexpr int ALIGNED = 8;

using End = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row, ALIGNED, Element, Row, ALIGNED,
    EndSchedule>::CollectiveOp;
using Main = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, Row, ALIGNED, Element, LayoutB, ALIGNED, float,
    TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename End::SharedStorage))>,
    MainSchedule>::CollectiveOp;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
    cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Main, End, Scheduler>>;

// What is chosen at launch: how many clusters lie side by side in the order of tiles, and which way that order goes.
constexpr int SWIZZLES[] = {1, 2, 4, 8};
constexpr const char* SETTINGS[] = {"swizzle 1, along M", "swizzle 2, along M", "swizzle 4, along M",
                                    "swizzle 8, along M", "swizzle 1, along N", "swizzle 2, along N",
                                    "swizzle 4, along N", "swizzle 8, along N"};

struct Plan {
    Gemm gemm;
    void* workspace;
};

extern "C" const char* peer_setting(int number) { return number < 8 ? SETTINGS[number] : nullptr; }

extern "C" Plan* peer_plan(int number, Element* a, Element* b, Element* c, int m, int n, int k) {
    using Inside = typename Gemm::GemmKernel;
    typename Gemm::Arguments given{cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1}, {}, {}};
    given.mainloop = {a, cutlass::make_cute_packed_stride(typename Inside::StrideA{}, make_shape(m, k, 1)), b,
                      cutlass::make_cute_packed_stride(typename Inside::StrideB{}, make_shape(n, k, 1))};
    given.epilogue = {{1.0f, 0.0f},
                      nullptr,
                      {},
                      c,
                      cutlass::make_cute_packed_stride(typename Inside::StrideD{}, make_shape(m, n, 1))};
    given.hw_info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
    given.scheduler.max_swizzle_size = SWIZZLES[number % 4];
    using Order = decltype(given.scheduler.raster_order);
    given.scheduler.raster_order = number < 4 ? Order::AlongM : Order::AlongN;
    Plan* plan = new Plan{};
    cudaMalloc(&plan->workspace, Gemm::get_workspace_size(given) + 16);
    if (plan->gemm.initialize(given, plan->workspace) != cutlass::Status::kSuccess) return nullptr;
    return plan;
}

extern "C" int peer_run(Plan* plan, cudaStream_t stream) { return int(plan->gemm.run(stream)); }
