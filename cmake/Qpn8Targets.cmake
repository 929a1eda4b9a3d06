# qpn8_library(<name> SOURCES ... [PUBLIC ...] [PRIVATE ...]): one static library a folder of src/. What links it sees
# the public headers; the project's own programs add src/ with qpn8_internal().
function(qpn8_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/include")
  qpn8_internal(${name})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# qpn8_internal(<name>): this target's own files include the headers of src/.
function(qpn8_internal name)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
endfunction()

# qpn8_test(<name> SOURCES ... LIBRARIES ...): one test executable a folder of tests/, its cases run by ctest.
# QPN8_TEST_DATA is tests/data, QPN8_REPOSITORY the repository; what lies outside it is found through shared_data().
function(qpn8_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  qpn8_internal(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    QPN8_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" QPN8_REPOSITORY="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 900)
endfunction()
