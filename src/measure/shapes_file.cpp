#include "measure/shapes_file.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/json_file.hpp"
#include "checkpoint/json_reader.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

struct TypeName {
  std::string_view name;
  WeightType type;
};

constexpr std::array kTypes = {TypeName{"f16", WeightType::f16}, TypeName{"bf16", WeightType::bf16},
                               TypeName{"f32", WeightType::f32}, TypeName{"f8_e4m3", WeightType::f8_e4m3}};

// Large enough for every model, and so small that a matrix of both still has a size.
constexpr std::int64_t kLargest = std::int64_t{1} << 24;

WeightType type_of(const JsonReader& reader) {
  const std::string name = reader.optional_string("type").value_or("f16");
  for (const TypeName& known : kTypes) {
    if (known.name == name) return known.type;
  }
  reader.refuse("type", R"("f16", "bf16", "f32" or "f8_e4m3")");
}

ProjectionDesc read_shape(const nlohmann::json& entry, const std::string& file, std::size_t index) {
  const std::string place = fmt::format("[{}]", index);
  if (!entry.is_object()) {
    throw Error(Error::bad_file, fmt::format(R"({}: {} is not an object; expected {{"role", "k", "n"}})", file, place));
  }
  const JsonReader reader(entry, file, place);
  for (const auto& [key, value] : entry.items()) {
    if (key != "role" && key != "k" && key != "n" && key != "type") {
      reader.refuse(key.c_str(), R"(only "role", "k", "n" and "type")");
    }
  }
  ProjectionDesc shape;
  TensorDesc& tensor = shape.tensor;
  const auto role = reader.optional_string("role");
  if (!role || role->empty()) reader.refuse("role", "the name of a role, such as \"mlp.down_proj\"");
  tensor.role = *role;
  tensor.k = reader.integer("k", 1, kLargest);
  tensor.n = reader.integer("n", 1, kLargest);
  tensor.type = type_of(reader);
  if (tensor.type == WeightType::f8_e4m3) {
    tensor.scales = ScaleKind::block;
    tensor.block_n = kScaleBlock;
    tensor.block_k = kScaleBlock;
  }
  shape.name = fmt::format("{} {}", place, tensor.role);
  return shape;
}

}  // namespace

std::vector<ProjectionDesc> load_shapes(const std::filesystem::path& file) {
  const nlohmann::json list = read_json_file(file, kConfigLimits);
  if (!list.is_array() || list.empty()) {
    throw Error(
        Error::bad_file,
        file.string() + R"(: is not a list of shapes; expected [{"role": "mlp.down_proj", "k": 3072, "n": 1024}])");
  }
  std::vector<ProjectionDesc> shapes;
  for (const nlohmann::json& entry : list) shapes.push_back(read_shape(entry, file.string(), shapes.size()));
  return shapes;
}

}  // namespace qpn8
