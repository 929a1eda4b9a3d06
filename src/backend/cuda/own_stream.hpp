#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/stream.hpp"

namespace qpn8::cuda {

/// A stream that is destroyed with its owner.
class OwnStream {
 public:
  /// See Stream::overlaps. Error of check_cuda() if the driver gives none.
  explicit OwnStream(bool overlaps = false) {
    check_cuda(cudaStreamCreateWithFlags(&stream_.handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    stream_.overlaps = overlaps;
  }
  ~OwnStream() { cudaStreamDestroy(stream_.handle); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  const Stream& get() const { return stream_; }

 private:
  Stream stream_;
};

}  // namespace qpn8::cuda
