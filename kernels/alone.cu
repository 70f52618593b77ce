// alone: a main for any rung, with nvcc and nothing else. Random inputs, a launch, a check of every element, a time:
//     nvcc -gencode arch=compute_90a,code=sm_90a -DRUNG=22_wgmma kernels/alone.cu -o gemm && ./gemm 4096 4096 4096
// A rung's macros are set in the same way: -DBM=64. Whoever leaves with a kernel takes its file, the headers that it
// includes, alone_rows.cuh (how each rung is launched) and this.
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <vector>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#ifdef __CUDA_ARCH__
#include TEXT(RUNG.cu)
#else  // nvcc's pass for the host: it has to know the kernels that need sm_80, too
#define __CUDA_ARCH__ 800
#include TEXT(RUNG.cu)
#undef __CUDA_ARCH__
#endif
#include "alone_rows.cuh"

#define CHECK(call)                                                                                         \
    do {                                                                                                    \
        const int error = static_cast<int>(call);                                                           \
        if (error != 0) {                                                                                   \
            fprintf(stderr, "%s, line %d: %s\n", __FILE__, __LINE__, cudaGetErrorString(cudaError(error))); \
            exit(2);                                                                                        \
        }                                                                                                   \
    } while (0)

namespace alone {

inline int multiprocessors() {
    int count;
    CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

#ifndef BLOCKS
#define BLOCKS multiprocessors()
#endif
#define JOINED(a, b) a##b
#define ROW(rung) JOINED(ROW_, rung)
#define KERNEL_OF(kernel, ...) kernel
#define LAUNCH_OF(kernel, ...) __VA_ARGS__
#define APPLY(f, ...) f(__VA_ARGS__)

inline Launch launch_of(int M, int N, int K) { return {APPLY(LAUNCH_OF, ROW(RUNG))}; }

// ---- Random numbers, rounded to a format: as the rung reads them, and as floats for the check.

// [numbers]
__device__ inline unsigned hashed(unsigned x) {  // PCG-RXS-M-XS
    x = x * 747796405u + 2891336453u;
    x = (x >> ((x >> 28) + 4) ^ x) * 277803737u;
    return x >> 22 ^ x;
}

__device__ inline unsigned draw(unsigned seed, int line, int k) { return hashed(hashed(hashed(seed) + line) + k); }

__device__ inline float normal(unsigned seed, int line, int k) {
    const unsigned bits = draw(seed, line, k);
    return sqrtf(-2 * logf(((bits >> 16) + 0.5f) / 65536)) * cosf(6.2831853f * (bits & 0xffff) / 65536);
}

__device__ inline float e2m1_value(unsigned code) {
    constexpr float NUMBERS[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -NUMBERS[code & 7] : NUMBERS[code & 7];
}

__device__ inline unsigned e2m1_code(float x) {
    unsigned code = 0;
    while (code < 7 && fabsf(x) > (e2m1_value(code) + e2m1_value(code + 1)) / 2) ++code;
    return code | (x < 0 ? 8 : 0);
}

// The scale of a block of numbers is 2 to the power of -1, 0 or 1.
__device__ inline int scale_exponent(unsigned seed, int line, int block) {
    return static_cast<int>(draw(seed + 100, line, block) % 3) - 1;
}

struct Matrix {
    Format format;
    Order order;
    int rows, cols, real_rows, real_cols;  // what is not real is padding: zeros
    bool k_along_row;                      // A's k runs along a row, B's down a column
    unsigned seed;
    float* values;  // row by row
    unsigned char* stored;
};

__global__ void fill(Matrix m) {
    const size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (at >= size_t(m.rows) * m.cols) return;
    const int row = at / m.cols, col = at % m.cols, line = m.k_along_row ? row : col, k = m.k_along_row ? col : row;
    const size_t place = m.order == BY_ROW ? at : size_t(col) * m.rows + row;
    const bool real = row < m.real_rows && col < m.real_cols;
    float x = real ? normal(m.seed, line, k) : 0;
    if (m.format == FP16) {
        const half number = __float2half(x);
        reinterpret_cast<half*>(m.stored)[place] = number;
        x = __half2float(number);
    } else if (m.format == BF16) {
        const __nv_bfloat16 number = __float2bfloat16(x);
        reinterpret_cast<__nv_bfloat16*>(m.stored)[place] = number;
        x = __bfloat162float(number);
    } else if (m.format == INT8) {
        x = fminf(fmaxf(rintf(42 * x), -127), 127);
        reinterpret_cast<signed char*>(m.stored)[place] = static_cast<signed char>(x);
    } else if (m.format == E4M3 || m.format == MXFP8) {
        const __nv_fp8_e4m3 number(x);
        m.stored[place] = number.__x;
        x = static_cast<float>(number);
        if (m.format == MXFP8) x = ldexpf(x, scale_exponent(m.seed, line, k / 32));
    } else if (m.format == NVFP4) {  // two to a byte, the first in its low half
        const int next_real = m.k_along_row ? col + 1 < m.real_cols : row + 1 < m.real_rows;
        const float next = real && next_real ? normal(m.seed, line, k + 1) : 0;
        if (k % 2 == 0) m.stored[place / 2] = e2m1_code(x) | e2m1_code(next) << 4;
        x = ldexpf(e2m1_value(e2m1_code(x)), scale_exponent(m.seed, line, k / 16));
    } else {
        reinterpret_cast<float*>(m.stored)[place] = x;
    }
    m.values[at] = x;
}

// Scales as ue8m0 (powers of two) or e4m3, in tiles of 128 lines and 4 blocks, as tcgen05.cp takes them.
__global__ void fill_scales(unsigned char* scales, int lines, int blocks, bool ue8m0, unsigned seed) {
    const size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (at >= size_t(lines) * blocks) return;
    const int line = at / blocks, block = at % blocks, exponent = scale_exponent(seed, line, block);
    const size_t tile = size_t(line / 128) * (blocks / 4) + block / 4;
    scales[tile * 512 + line % 32 * 16 + line % 128 / 32 * 4 + block % 4] = ue8m0 ? 127 + exponent : 56 + 8 * exponent;
}

template <typename Out>
__global__ void fill_output(Out* C, size_t count, bool with_nan) {
    const size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (at < count) C[at] = with_nan ? nanf("") : normal(3, 0, static_cast<int>(at));
}
// [/numbers]

// ---- The check: A B, and alpha A B + beta C, against sums in float64, with the bound of kernels/accuracy.py.

// [check]
struct Rounding {
    double input, sum, output, smallest;  // halves of the spacing of numbers at 1; the smallest number
};

struct Verdict {
    unsigned long long wrong;
    float worst;  // of the bound
};

template <typename Out>
__global__ void check(const float* A, const float* B, const Out* plain, const Out* mixed, const Out* old, int M, int N,
                      int K, int N_padded, int K_padded, float alpha, float beta, Rounding u, Verdict* verdict) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    double sum = 0;
    float squares = 0, sizes = 0;
    for (int k = 0; k < K; ++k) {
        const float a = A[size_t(row) * K_padded + k], b = B[size_t(k) * N_padded + col];
        sum += double(a) * b;
        squares += a * b * a * b;
        sizes += fabsf(a * b);
    }
    // Errors of either sign grow with sqrt(K); six standard deviations are allowed, and never more than the worst case.
    const double size = fabs(sum), spread = sqrtf(squares);
    const double inputs = fmin(2 * u.input * (size + 6 * spread), 2.01 * u.input * sizes);
    const double sums = fmin(u.sum * 6 * sqrt(double(K)) * (size + spread), (K + 1) * u.sum * sizes);
    const size_t at = size_t(row) * N_padded + col;
    for (const bool is_mixed : {false, true}) {
        const double product = (is_mixed ? alpha : 1) * sum, before = is_mixed ? beta * double(float(old[at])) : 0;
        double bound = (is_mixed ? fabsf(alpha) : 1) * (inputs + sums) + 3 * u.sum * (fabs(product) + fabs(before));
        bound += u.output * (fabs(product + before) + bound) + u.smallest;
        const double error = fabs(double(float((is_mixed ? mixed : plain)[at])) - product - before);
        const float share = error < INFINITY ? static_cast<float>(error / bound) : INFINITY;  // NaN is not less
        if (share > 1) atomicAdd(&verdict->wrong, 1);
        atomicMax(reinterpret_cast<int*>(&verdict->worst), __float_as_int(share));  // positive floats are in that order
    }
}
// [/check]

// ---- What the host does.

constexpr int BITS[] = {32, 32, 16, 16, 8, 8, 8, 4};  // of each format
constexpr CUtensorMapDataType MAP_TYPES[] = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
                                             CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                             CU_TENSOR_MAP_DATA_TYPE_UINT8,   CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                             CU_TENSOR_MAP_DATA_TYPE_UINT8,   CU_TENSOR_MAP_DATA_TYPE_UINT8};

template <typename T>
T* allocate(size_t count) {
    void* memory;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    CHECK(cudaMemset(memory, 0, count * sizeof(T)));
    return static_cast<T*>(memory);
}

inline int groups(size_t threads) { return static_cast<int>((threads + 255) / 256); }

// Describes a matrix to TMA: boxes of `box_rows` rows of 128 bytes, swizzled over all of them.
inline CUtensorMap tensor_map(void* matrix, Format format, int rows, int cols, int box_rows) {
    void* encode = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
#else
    CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found));
#endif
    CHECK(found == cudaDriverEntryPointSuccess ? cudaSuccess : cudaErrorNotSupported);
    const cuuint64_t pitch = cuuint64_t(cols) * BITS[format] / 8;  // bytes
    const int bytes = std::max(BITS[format] / 8, 1);               // of what the map counts
    const cuuint64_t shape[] = {pitch / bytes, cuuint64_t(rows)};
    const cuuint32_t box[] = {cuuint32_t(128 / bytes), cuuint32_t(box_rows)}, steps[] = {1, 1};
    CUtensorMap map;
    CHECK(reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(encode)(
        &map, MAP_TYPES[format], 2, matrix, shape, &pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

inline CUtensorMap tensor_map(const Matrix& m, int box_rows) {
    const bool by_row = m.order == BY_ROW;
    return tensor_map(m.stored, m.format, by_row ? m.rows : m.cols, by_row ? m.cols : m.rows, box_rows);
}

inline Matrix random_matrix(Format format, Order order, int rows, int cols, int real_rows, int real_cols, bool is_A) {
    const size_t count = size_t(rows) * cols;
    const Matrix m = {format,
                      order,
                      rows,
                      cols,
                      real_rows,
                      real_cols,
                      is_A,
                      is_A ? 1u : 2u,
                      allocate<float>(count),
                      allocate<unsigned char>(count * BITS[format] / 8)};
    fill<<<groups(count), 256>>>(m);
    CHECK(cudaGetLastError());
    return m;
}

inline unsigned char* scales_of(const Matrix& m, int box_lines) {
    const bool ue8m0 = m.format == MXFP8;
    const int k = m.k_along_row ? m.cols : m.rows, in_a_box = ue8m0 ? 4 : 16;
    const int lines = ceil_div(m.k_along_row ? m.rows : m.cols, box_lines) * box_lines;
    const int blocks = ceil_div(ceil_div(k, ue8m0 ? 32 : 16), in_a_box) * in_a_box;
    unsigned char* scales = allocate<unsigned char>(size_t(lines) * blocks);
    fill_scales<<<groups(size_t(lines) * blocks), 256>>>(scales, lines, blocks, ue8m0, m.seed);
    CHECK(cudaGetLastError());
    return scales;
}

// A kernel takes A, B and C as pointers; or tensor maps of A and B, of C where it stores by TMA, scales where there are
// any, and C. Then M, N, K, alpha and beta.
template <typename A_, typename B_, typename Third, typename... Rest>
int run(void (*kernel)(A_, B_, Third, Rest...), int M, int N, int K) {
    constexpr bool BY_TMA = std::is_class_v<A_>, STORES_BY_TMA = std::is_class_v<Third>;
    constexpr bool SCALED = std::is_same_v<Third, const unsigned char*>;
    constexpr int C_AT = SCALED ? 4 : STORES_BY_TMA ? 3 : 2;
    using CPointer = std::tuple_element_t<C_AT, std::tuple<A_, B_, Third, Rest...>>;
    using Out = std::remove_const_t<std::remove_pointer_t<CPointer>>;
    constexpr Format OUTPUT = sizeof(Out) == 4 ? FP32 : std::is_same_v<Out, half> ? FP16 : BF16;

    const Launch asked = launch_of(M, N, K);
    int Mp = ceil_div(M, asked.whole[0]) * asked.whole[0], Np = ceil_div(N, asked.whole[1]) * asked.whole[1];
    int Kp = ceil_div(K, asked.whole[2]) * asked.whole[2];
    const Launch how = launch_of(Mp, Np, Kp);
    const Matrix A = random_matrix(how.inputs, how.A, Mp, Kp, M, K, true);
    const Matrix B = random_matrix(how.inputs, how.B, Kp, Np, K, N, false);
    const size_t outputs = size_t(Mp) * Np;
    Out *plain = allocate<Out>(outputs), *mixed = allocate<Out>(outputs), *old = allocate<Out>(outputs);
    fill_output<<<groups(outputs), 256>>>(plain, outputs, true);  // NaN: nobody may read it where beta is 0
    fill_output<<<groups(outputs), 256>>>(mixed, outputs, false);
    fill_output<<<groups(outputs), 256>>>(old, outputs, false);
    CHECK(cudaGetLastError());

    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, how.shared));
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t config = {how.grid, how.block, size_t(how.shared), nullptr, &early, how.early ? 1u : 0u};
    void* pointers[] = {A.stored, B.stored, nullptr, nullptr};
    CUtensorMap maps[2];
    if constexpr (BY_TMA) maps[0] = tensor_map(A, how.a_box), maps[1] = tensor_map(B, how.b_box);
    if constexpr (SCALED) pointers[2] = scales_of(A, how.a_box), pointers[3] = scales_of(B, how.b_box);
    auto launch = [&](Out* C, float alpha, float beta) {
        std::vector<void*> words = {&pointers[0], &pointers[1]};
        CUtensorMap C_map;
        if constexpr (BY_TMA) words = {&maps[0], &maps[1]};
        if constexpr (SCALED) words.insert(words.end(), {&pointers[2], &pointers[3]});
        if constexpr (STORES_BY_TMA) {
            C_map = tensor_map(C, OUTPUT, Mp, Np, 16);
            words.push_back(&C_map);
        }
        words.insert(words.end(), {&C, &Mp, &Np, &Kp, &alpha, &beta});
        CHECK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), words.data()));
    };

    const float alpha = 1.5f, beta = -0.5f;
    launch(plain, 1, 0);
    launch(mixed, alpha, beta);
    Rounding u = {how.inputs == TF32 ? 0x1p-10 : 0, 0x1p-22, 0x1p-24, 0x1p-149};
    if (how.inputs == FP32 || how.inputs == INT8) u.sum = 0x1p-24;
    if (how.inputs == E4M3) u.sum = 0x1p-13;
    if (OUTPUT == FP16) u.output = 0x1p-11, u.smallest = 0x1p-24;
    if (OUTPUT == BF16) u.output = 0x1p-8, u.smallest = 0x1p-133;
    Verdict *found = allocate<Verdict>(1), verdict;
    check<<<tile_grid(M, N, 16, 16), dim3(16, 16)>>>(A.values, B.values, plain, mixed, old, M, N, K, Np, Kp, alpha,
                                                     beta, u, found);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&verdict, found, sizeof verdict, cudaMemcpyDeviceToHost));

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    auto time = [&](int launches) {  // ms of one
        float ms;
        CHECK(cudaEventRecord(start));
        for (int i = 0; i < launches; ++i) launch(plain, 1, 0);
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        return ms / launches;
    };
    const int launches = std::min(std::max(static_cast<int>(5 / time(1)), 1), 100);  // about 5 ms
    std::vector<float> times(11);
    for (float& ms : times) {
        launch(plain, 1, 0);  // not timed: it finds the GPU at rest
        ms = time(launches);
    }
    std::sort(times.begin(), times.end());
    const double ms = times[times.size() / 2];
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    printf("%s %dx%dx%d on %s: %.4g ms, %.4g TFLOP/s; ", TEXT(RUNG), M, N, K, gpu.name, ms, 2e-9 * M * N * K / ms);
    if (verdict.wrong) return printf("WRONG in %llu elements\n", verdict.wrong), 1;
    return printf("right, %.2f of the error bound\n", verdict.worst), 0;
}

}  // namespace alone

int main(int count, char** words) {
    int size[3] = {4096, 4096, 4096};
    for (int i = 1; i < count && i < 4; ++i) size[i - 1] = std::max(atoi(words[i]), 1);
    return alone::run(APPLY(KERNEL_OF, ROW(RUNG)), size[0], size[1], size[2]);
}
