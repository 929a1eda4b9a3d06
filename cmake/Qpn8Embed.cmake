# qpn8_embed(<output.cpp> <function> FILES ...): writes a source file that defines
#   std::span<const qpn8::EmbeddedFile> qpn8::<function>();
# with the name and the text of each file. See src/base/embedded_file.hpp.
set(QPN8_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/embed.cmake")
function(qpn8_embed output function)
  cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
  string(REPLACE ";" "|" joined "${ARG_FILES}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DFUNCTION=${function}" "-DFILES=${joined}"
            -P "${QPN8_EMBED_SCRIPT}"
    DEPENDS ${ARG_FILES} "${QPN8_EMBED_SCRIPT}"
    VERBATIM)
  # By itself, so that the files it would be compiled with can be checked before anything is built.
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
