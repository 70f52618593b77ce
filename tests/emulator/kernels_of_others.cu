// Kernels as others write them: CUB, cooperative groups, libcu++ atomics and pipelines, half and bfloat16 intrinsics,
// the math library, spin locks, assertions, arrays in local memory. test_kernels_of_others.py knows the answers.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cuda/atomic>
#include <cuda/pipeline>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void cub_reduce(const float* x, float* out, int n) {
  using R = cub::BlockReduce<float, 256>; __shared__ typename R::TempStorage tmp;
  float v = 0; for (int i = blockIdx.x*256+threadIdx.x; i < n; i += gridDim.x*256) v += x[i];
  float s = R(tmp).Sum(v); if (threadIdx.x == 0) atomicAdd(out, s);
}
extern "C" __global__ void cub_scan(const int* x, int* out) {
  using S = cub::BlockScan<int, 128>; __shared__ typename S::TempStorage tmp;
  int v[4]; for (int i=0;i<4;i++) v[i]=x[threadIdx.x*4+i];
  S(tmp).InclusiveSum(v, v); for (int i=0;i<4;i++) out[threadIdx.x*4+i]=v[i];
}
extern "C" __global__ void cub_sort(unsigned* x) {
  using S = cub::BlockRadixSort<unsigned, 128, 4>; __shared__ typename S::TempStorage tmp;
  unsigned v[4]; for (int i=0;i<4;i++) v[i]=x[threadIdx.x*4+i];
  S(tmp).Sort(v); for (int i=0;i<4;i++) x[threadIdx.x*4+i]=v[i];
}
extern "C" __global__ void cg_reduce(const int* x, int* out) {
  auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); auto t8 = cg::tiled_partition<8>(w);
  int v = x[b.group_index().x*b.size()+b.thread_rank()];
  int s = cg::reduce(w, v, cg::plus<int>()); int m = cg::reduce(t8, v, cg::greater<int>());
  int sc = cg::inclusive_scan(w, v);
  out[(b.group_index().x*b.size()+b.thread_rank())*3] = s; out[(b.group_index().x*b.size()+b.thread_rank())*3+1] = m; out[(b.group_index().x*b.size()+b.thread_rank())*3+2] = sc;
  if (v & 1) { auto c = cg::coalesced_threads(); int r = c.thread_rank(); if (r==0) atomicAdd(out+ 3*gridDim.x*b.size(), c.size()); }
}
extern "C" __global__ void softmax(const float* x, float* y, int n) {
  extern __shared__ float sh[];
  const float* row = x + blockIdx.x*n; float m=-1e30f;
  for (int i=threadIdx.x;i<n;i+=blockDim.x) m=fmaxf(m,row[i]);
  for (int o=16;o;o>>=1) m=fmaxf(m,__shfl_xor_sync(~0u,m,o));
  if ((threadIdx.x&31)==0) sh[threadIdx.x/32]=m; __syncthreads();
  m = sh[0]; for (int i=1;i<blockDim.x/32;i++) m=fmaxf(m,sh[i]); __syncthreads();
  float s=0; for (int i=threadIdx.x;i<n;i+=blockDim.x) s+=expf(row[i]-m);
  for (int o=16;o;o>>=1) s+=__shfl_down_sync(~0u,s,o);
  if ((threadIdx.x&31)==0) sh[threadIdx.x/32]=s; __syncthreads();
  if (threadIdx.x==0){ for (int i=1;i<blockDim.x/32;i++) s+=sh[i]; sh[0]=s;} __syncthreads();
  s=sh[0]; for (int i=threadIdx.x;i<n;i+=blockDim.x) y[blockIdx.x*n+i]=expf(row[i]-m)/s;
}
extern "C" __global__ void halves(const __half2* a, const __nv_bfloat162* b, __half2* c, __nv_bfloat162* d, float* e, int n) {
  int i=blockIdx.x*blockDim.x+threadIdx.x; if(i>=n) return;
  c[i]=__hfma2(a[i],a[i],__float2half2_rn(0.5f)); d[i]=__hadd2(b[i],__hmul2(b[i],b[i]));
  float2 f=__half22float2(a[i]); float2 g=__bfloat1622float2(b[i]); e[i]=f.x*g.x+f.y*g.y+__half2float(hexp(__low2half(a[i])))+(__hgt(__low2half(a[i]),__high2half(a[i]))?1.f:0.f);
}
extern "C" __global__ void math(const float* x, const double* xd, float* y, double* z) {
  int i=blockIdx.x*blockDim.x+threadIdx.x; float v=x[i];
  y[i]=sinf(v)+cosf(v)*tanhf(v)+powf(fabsf(v),1.3f)+erff(v)+log1pf(fabsf(v))+rsqrtf(fabsf(v)+1)+floorf(v)+fmodf(v,0.7f)+atan2f(v,2.f)+cbrtf(v);
  double d=xd[i]; z[i]=sin(d)*exp(d)+pow(fabs(d),0.3)+sqrt(fabs(d))/(1+d*d)+log(fabs(d)+1)+tgamma(1+fabs(d));
}
extern "C" __global__ void ints(const int* x, const long long* y, int* a, long long* b, unsigned long long* c) {
  int i=threadIdx.x; int v=x[i]; long long w=y[i];
  a[i]=v/7+v%13+__popc(v)+__clz(v)+__ffs(v)+__brev(v)%101+abs(v)/3+(v>>3)+__vadd2(v,v)+__usad(v,3,4)+__mulhi(v,v)+__byte_perm(v,i,0x3214)+__funnelshift_l(v,i,5)+(int)min(v,i);
  b[i]=w/1000003+w%77+__popcll(w)+__clzll(w)+(w>>5)*3+__mul64hi(w,w)+ (w/(i+1)) ; c[i]=(unsigned long long)w/12345 + (unsigned long long)w%(i+3) + __umul64hi(w,w);
}
extern "C" __global__ void atomics(cuda::atomic<int, cuda::thread_scope_device>* a, int* lock, double* d) {
  a->fetch_add(3); a->fetch_max(5, cuda::memory_order_relaxed);
  atomicAdd(d, 0.5);
  bool done=false; while(!done){ if(atomicCAS(lock,0,1)==0){ lock[1]+=1; __threadfence(); atomicExch(lock,0); done=true; } }
}
extern "C" __global__ void pipe(const float* x, float* y, int n) {
  __shared__ float buf[2][128]; auto block=cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block,2> st; auto p=cuda::make_pipeline(block,&st);
  for(int s=0;s<2;s++){ p.producer_acquire(); cuda::memcpy_async(block,buf[s],x+s*128,cuda::aligned_size_t<16>(128*4),p); p.producer_commit(); }
  for(int i=0;i<n;i++){ p.consumer_wait(); block.sync(); float v=buf[i&1][127-threadIdx.x]; block.sync(); p.consumer_release();
    y[i*128+threadIdx.x]=v*2; p.producer_acquire(); if(i+2<n) cuda::memcpy_async(block,buf[i&1],x+(i+2)*128,cuda::aligned_size_t<16>(128*4),p); p.producer_commit(); }
}
extern "C" __global__ void asserts(int* x){ assert(x[threadIdx.x] < 100); x[threadIdx.x]+=1; }
struct __align__(16) V { float a,b,c,d; };
template<int N> __device__ __noinline__ void fill(V (&v)[N], int k){ for(int i=0;i<N;i++) v[i].b=k*i; }
extern "C" __global__ void locals(float* y,int k){ V v[6]; for(int i=0;i<6;i++) v[i]=V{1.f*i,2,3,4}; fill(v,threadIdx.x); float s=0; for(int i=0;i<k;i++) s+=v[(i*threadIdx.x)%6].b+v[i%6].a; y[threadIdx.x]=s; }
