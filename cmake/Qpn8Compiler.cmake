# Language level, warnings and sanitizers, for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# For the sanitizer presets: optimised enough to be fast, little enough to compile quickly.
set(CMAKE_CXX_FLAGS_SANITIZE "-O1")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# A product and a sum are rounded apart unless a kernel says FMA: the scalar references mean the same on every target.
set(warnings
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough -Werror)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${warnings};-ffp-contract=off>")

if(QPN8_SANITIZE)
  # Line tables are enough for a report's stack and halve what the compiler writes.
  add_compile_options(-g1 -fsanitize=${QPN8_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${QPN8_SANITIZE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping or endless copies in the std::string code that it inlines (GCC bugs 105651, 105329).
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A class of a .cpp file may hold what its anonymous namespace defines; g++ takes it for a header's where the file is
  # compiled with others of its folder.
  add_compile_options(-Wno-subobject-linkage)
endif()
