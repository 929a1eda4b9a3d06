#include "model/residual_connection.hpp"

namespace qpn8 {

GatedScratch::GatedScratch(Backend& backend, const GatedStreams& shape, std::int64_t max_rows)
    : normed(backend.allocate(backend.activation_type(), max_rows, shape.streams * shape.hidden_size)),
      low(backend.allocate(backend.activation_type(), max_rows, shape.low_rows)),
      gates(backend.allocate(backend.activation_type(), max_rows, shape.streams * shape.hidden_size)) {}

GatedConnection::GatedConnection(const WeightLoader& loader, Backend& backend, const std::string& prefix, Kind kind,
                                 const GatedStreams& shape, GatedScratch& scratch)
    : backend_(backend),
      shape_(shape),
      scratch_(scratch),
      down_(loader.linear(prefix + (kind == Kind::head ? "down" : "down_inject"))),
      up_(loader.linear(prefix + "up")),
      norm_(loader.centred_row(prefix + "hc_norm.weight", shape.streams * shape.hidden_size)) {}

void GatedConnection::read(const Tensor& h, const Tensor& x) {
  const Tensor normed = scratch_.normed.tensor.row_range(0, h.rows);
  const Tensor low = scratch_.low.tensor.row_range(0, h.rows).col_range(0, down_->n());
  const Tensor chosen = low.col_range(0, shape_.low_rank);
  const Tensor gates = scratch_.gates.tensor.row_range(0, h.rows);
  backend_.normalise_streams(h, norm_.tensor, shape_.streams, shape_.eps, normed);
  backend_.linear(*down_, normed, low);
  backend_.scaled_silu(chosen, 1.0F / static_cast<float>(shape_.streams));
  backend_.linear_mixed(*up_, chosen, normed, gates, x);
}

void GatedConnection::write(const Tensor& h, const Tensor& y) {
  const Tensor low = scratch_.low.tensor.row_range(0, h.rows);
  backend_.inject_streams(h, low.col_range(shape_.low_rank, shape_.streams), y);
}

}  // namespace qpn8
