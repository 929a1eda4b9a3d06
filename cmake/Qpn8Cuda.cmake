# The CUDA language and libraries of the GPU backend. The runtime is linked statically, so that a program built with
# CUDA starts on a machine without a GPU and says so.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80;90")
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12.0 REQUIRED)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")  # CMake 3.25 does not know that nvcc 12 has it
endif()
# Constant expressions may be computed on the device. Of nvcc's warnings two are not ours: 554 (a matrix of constants
# never needs the conversion to one) and 128 (what follows a return under "if constexpr" is not reached).
string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr --diag-suppress=554,128 -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
