#include "kernels/cuda/qpn8_kernel_table.cuh"

namespace qpn8::cuda {

LinearKernel find_streamed_kernel(const KernelForm& form) {
  return KernelTable<false, kStreamedForms.size(), kStreamedForms>::find(form);
}

}  // namespace qpn8::cuda
