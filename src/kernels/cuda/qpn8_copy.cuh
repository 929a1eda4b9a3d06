#pragma once

#include "kernels/cuda/qpn8_schedule.hpp"

// Asynchronous copies to shared memory and the few instructions of programmatic launch and of clusters. What came with
// sm_90 does nothing before it.

namespace qpn8::cuda {

/// Whether the hardware copies any number of bytes at one thread's request, and reports to a barrier.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kBulkCopies = true;
#else
inline constexpr bool kBulkCopies = false;
#endif

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes.
__device__ inline void copy_lane(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/// Copies 16 bytes, or writes zeros if `there` is false; `from` is an address that may be read either way.
__device__ inline void copy_lane_or_zero(unsigned to, const void* from, bool there) {
  const int bytes = there ? kLaneBytes : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ inline void commit_lane_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most kPending groups of this thread's copies are under way.
template <int kPending>
__device__ inline void wait_lane_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// A barrier of one arrival (that of expect_bytes) and the bytes that it expects.
__device__ inline void init_barrier(unsigned barrier) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

/// Makes init_barrier known to the copy engine and to the cluster's other blocks.
__device__ inline void publish_barriers() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void expect_bytes(unsigned barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}

__device__ inline void wait_barrier(unsigned barrier, unsigned phase) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n .reg .pred done;\n AGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n @!done bra AGAIN;\n }" ::"r"(
          barrier),
      "r"(phase)
      : "memory");
#endif
}

/// Copies bytes that are read once: they should be the first to leave the L2.
__device__ inline void copy_bulk_once(unsigned to, const void* from, int bytes, unsigned barrier) {
#if __CUDA_ARCH__ >= 900
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
#endif
}

/// Lets the next kernel of the stream start; its own wait_for_previous_kernel keeps it from reading too early.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns once every kernel before this one in the stream has finished and its writes can be read.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The two halves of a barrier of all threads of a cluster; writes to the shared memory of peers before the arrival are
/// seen after the wait.
__device__ inline void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ inline void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/// Writes into the shared memory of block `rank` of the cluster, at the address of `here` in this block, and reports
/// the four bytes to the barrier at the place of `barrier` there.
__device__ inline void send_to_peer(const float* here, unsigned barrier, unsigned rank, float value) {
#if __CUDA_ARCH__ >= 900
  unsigned there;
  unsigned barrier_there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(here)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier_there) : "r"(barrier), "r"(rank));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there),
               "r"(__float_as_uint(value)), "r"(barrier_there)
               : "memory");
#endif
}

}  // namespace qpn8::cuda
