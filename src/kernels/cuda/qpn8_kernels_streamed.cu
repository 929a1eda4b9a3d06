#include "kernels/cuda/qpn8_kernel.cuh"
#include "kernels/cuda/qpn8_kernel_table.cuh"

namespace qpn8::cuda {
namespace {

using Table = KernelTable<false,
                          // unit_tiles, chunk
                          Form<1, 8>, Form<1, 10>, Form<1, 16>, Form<2, 8>, Form<2, 10>, Form<2, 16>, Form<4, 8>,
                          Form<4, 10>, Form<4, 16>>;

}  // namespace

LinearKernel find_streamed_kernel(const KernelForm& form) { return Table::find(form); }

}  // namespace qpn8::cuda
