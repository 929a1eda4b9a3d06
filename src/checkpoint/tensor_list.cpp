#include "checkpoint/tensor_list.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/printable.hpp"
#include "checkpoint/tensor_lists.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

struct Lister {
  std::string_view model_type;
  std::vector<ListedTensor> (*list)(const ModelConfig&);
};

constexpr std::array kListers = {
    Lister{"llama", list_decoder_tensors},           Lister{"qwen2", list_decoder_tensors},
    Lister{"qwen3", list_decoder_tensors},           Lister{"qwen3_moe", list_decoder_tensors},
    Lister{"deepseek_v4", list_deepseek_v4_tensors}, Lister{"qwen4_exp_text", list_qwen4_exp_tensors},
};

}  // namespace

std::vector<ListedTensor> list_tensors(const ModelConfig& config) {
  for (const Lister& lister : kListers) {
    if (lister.model_type == config.model_type) return lister.list(config);
  }
  throw Error(Error::unsupported, fmt::format("{}: model_type {} has no list of tensors", config.file.string(),
                                              printable(config.model_type)));
}

}  // namespace qpn8
