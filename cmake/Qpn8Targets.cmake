if(QPN8_PCH)
  qpn8_pch(qpn8_pch
    HEADERS <algorithm> <filesystem> <fmt/format.h> <functional> <map> <memory> <nlohmann/json.hpp> <optional>
            <string> <variant> <vector>
    LIBRARIES Threads::Threads fmt::fmt nlohmann_json::nlohmann_json
    OPTIONS -fPIC)
endif()

# qpn8_library(<name> SOURCES ... [PUBLIC ...] [PRIVATE ...]): one static library a folder of src/. What links it sees
# the public headers; the project's own programs add src/ with qpn8_internal().
function(qpn8_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/include")
  qpn8_internal(${name})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(QPN8_PCH)
    target_precompile_headers(${name} REUSE_FROM qpn8_pch)
  endif()
endfunction()

# qpn8_internal(<name>): this target's own files include the headers of src/.
function(qpn8_internal name)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
endfunction()

# A test's own code need not be fast, only quick to compile.
set(QPN8_TEST_OPTIONS $<IF:$<CONFIG:Release>,-O1,-O0>)

# What every target of test code has. QPN8_TEST_DATA is tests/data, QPN8_REPOSITORY the repository; what lies outside it
# is found through shared_data().
function(qpn8_test_code name)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  qpn8_internal(${name})
  target_link_libraries(${name} PRIVATE ${ARGN} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    QPN8_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" QPN8_REPOSITORY="${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${QPN8_TEST_OPTIONS})
  if(QPN8_PCH)
    target_precompile_headers(${name} REUSE_FROM qpn8_test_pch)
  endif()
endfunction()

# qpn8_test(<name> [GPU] SOURCES ... [PROCESSORS n] LIBRARIES ...): one test executable a folder of tests/, its cases run
# by ctest, each taken to keep n processors busy (1 unless given). Without GPU no test sees one, so that those of the CPU's
# numbers and of what a machine lacks mean the same everywhere.
function(qpn8_test name)
  cmake_parse_arguments(ARG "GPU" "PROCESSORS" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  qpn8_test_code(${name} ${ARG_LIBRARIES})
  set(environment "CUDA_VISIBLE_DEVICES=-1")
  if(ARG_GPU)
    set(environment "")
  endif()
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 900 PROCESSORS ${ARG_PROCESSORS} ENVIRONMENT "${environment}")
endfunction()
