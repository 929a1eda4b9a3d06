#include "kernels/cuda/qpn8_kernel.cuh"
#include "kernels/cuda/qpn8_kernel_table.cuh"

namespace qpn8::cuda {
namespace {

using Table = KernelTable<true,
                          // unit_tiles, chunk
                          Form<1, 4>, Form<1, 5>, Form<1, 6>, Form<1, 8>, Form<1, 10>, Form<1, 16>, Form<2, 2>,
                          Form<2, 4>, Form<2, 5>, Form<2, 6>, Form<2, 8>, Form<2, 10>, Form<4, 2>, Form<4, 4>,
                          Form<4, 5>, Form<5, 2>>;

}  // namespace

LinearKernel find_resident_kernel(const KernelForm& form) { return Table::find(form); }

}  // namespace qpn8::cuda
