#include "kernels/cpu/row_store.hpp"

#include <gtest/gtest.h>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;

TEST(StoreRows, KeepsTheLastPositionsOfEverySequenceRounded) {
  for_each_isa([] {
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const int threads : {1, 3}) {
        const Matrix<float> x = gaussian(12, 37, 1);
        Places places;
        places.add(1, 3, 9);  // two of which the ring has no room for
        places.add(0, 6, 3);
        StoredRows rows(dtype, 2, 7, 37);
        ThreadTeam team(threads);
        store_rows(x.view(), places.view(), rows.store(), team);
        for (std::int64_t t = 2; t < 12; ++t) {
          const std::int32_t slot = places.slots[static_cast<std::size_t>(t)];
          const std::int32_t index = places.positions[static_cast<std::size_t>(t)] % 7;
          for (std::int64_t i = 0; i < 37; ++i) {
            const float expected = dtype == DType::f32 ? x(t, i) : to_float(to_half(x(t, i)));
            ASSERT_EQ(value_at(rows.store(), slot, index, i), expected) << t << " " << i;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
