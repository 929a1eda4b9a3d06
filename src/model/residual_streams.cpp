#include "model/residual_streams.hpp"

namespace qpn8 {
namespace {

std::int64_t maps_of(const StreamOptions& options, StreamConnection::Kind kind) {
  return kind == StreamConnection::Kind::head ? options.streams : (2 + options.streams) * options.streams;
}

}  // namespace

StreamScratch::StreamScratch(Backend& backend, const StreamOptions& options, std::int64_t max_rows)
    : mapped_(backend.allocate(DType::f32, max_rows, maps_of(options, StreamConnection::Kind::block))),
      weights_(backend.allocate(DType::f32, max_rows, maps_of(options, StreamConnection::Kind::block))) {}

StreamConnection::StreamConnection(const WeightLoader& loader, Backend& backend, const std::string& prefix, Kind kind,
                                   const StreamOptions& options, StreamScratch& scratch)
    : backend_(backend),
      options_(options),
      scratch_(scratch),
      fn_(loader.steering(prefix + "fn", maps_of(options, kind), options.streams * options.hidden_size)),
      base_(loader.row(prefix + "base", maps_of(options, kind))),
      scale_(loader.row(prefix + "scale", kind == Kind::head ? 1 : 3)) {}

void StreamConnection::read(const Tensor& h, const Tensor& x) {
  const StreamMaps maps = {.z = scratch_.mapped(h.rows, fn_->n()),
                           .base = base_.tensor,
                           .scale = scale_.tensor,
                           .streams = options_.streams,
                           .sinkhorn_steps = options_.sinkhorn_steps,
                           .eps = options_.eps,
                           .norm_eps = options_.norm_eps};
  const Tensor weights = scratch_.weights(h.rows, fn_->n());
  backend_.linear(*fn_, h, maps.z);
  backend_.stream_weights(h, maps, weights);
  backend_.collapse_streams(h, weights, x);
}

void StreamConnection::write(const Tensor& h, const Tensor& y) {
  backend_.expand_streams(h, scratch_.weights(h.rows, fn_->n()), y);
}

}  // namespace qpn8
