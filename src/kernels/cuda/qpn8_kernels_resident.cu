#include "kernels/cuda/qpn8_kernel_table.cuh"

namespace qpn8::cuda {

LinearKernel find_resident_kernel(const KernelForm& form) {
  return KernelTable<true, kResidentForms.size(), kResidentForms>::find(form);
}

}  // namespace qpn8::cuda
