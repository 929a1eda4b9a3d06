# Precompiled headers: two sets of headers from outside the project that most files parse, each compiled once and shared.
# They halve the build's time and change nothing else. QPN8_PCH is off in the debug preset and for clang-tidy, where each
# file must be seen to include what it uses.
option(QPN8_PCH "Precompile the headers of other libraries" OFF)

# qpn8_pch(<name> HEADERS ... LIBRARIES ... OPTIONS ...): an object library whose precompiled header others reuse.
function(qpn8_pch name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES;OPTIONS" ${ARGN})
  set(source "${PROJECT_BINARY_DIR}/pch/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(${name} OBJECT "${source}")
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  # As the targets that reuse it are compiled: -fPIC for a library, -fPIE for a program.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

if(QPN8_PCH AND CCACHE_PROGRAM)
  # What ccache asks for before it caches a file that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      "${CCACHE_PROGRAM}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  else()
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()
