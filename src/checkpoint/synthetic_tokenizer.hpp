#pragma once

#include <filesystem>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// Writes tokenizer.json, tokenizer_config.json and chat_template.jinja for a synthetic checkpoint: a byte-level BPE
/// whose text is one token a byte, with ids of the config's vocabulary beyond that filled by tokens " t300" and the
/// like, so that any text encodes and any id decodes. The config's bos and eos ids are <|endoftext|> and <|im_end|>;
/// <|im_start|> has the first free id behind bos.
/// Error::unsupported_shape for a vocabulary too small for the 256 bytes and these three.
void write_synthetic_tokenizer(const ModelConfig& config, const std::filesystem::path& folder);

}  // namespace qpn8
