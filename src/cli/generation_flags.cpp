#include "cli/generation_flags.hpp"

#include "cli/number.hpp"

namespace qpn8::cli {

void add_generation_flags(CLI::App& command, GenerationRequest& request) {
  SamplingOptions& sampling = request.sampling;
  add_number(command, "--max-tokens", request.max_tokens, "most tokens of an output [256]");
  add_number(command, "--temperature", sampling.temperature,
             "0 takes the likeliest token each time, whatever generation_config.json asks for: give its settings by "
             "these flags to sample as it does [0]");
  add_number(command, "--top-k", sampling.top_k, "sample from so many of the likeliest tokens; 0 is all [0]");
  add_number(command, "--top-p", sampling.top_p, "sample from the likeliest tokens with this probability together [1]");
  add_number(command, "--min-p", sampling.min_p, "leave out tokens below this fraction of the likeliest one's [0]");
  add_number(command, "--repetition-penalty", sampling.repetition_penalty, "above 1 discourages what was there [1]");
  command.add_option("--stop", request.stop, "ends an output at this text; may be repeated")->allow_extra_args(false);
  command.add_flag("--ignore-eos", request.ignore_eos, "go on after an end-of-sequence token");
}

}  // namespace qpn8::cli
