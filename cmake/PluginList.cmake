# plugin_list(out layers.def LAYER layer): reads the .def list of a kind of plug-in and sets `out` to its source files.
#
#     LAYER(dense)      in src/model/layer/layers.def       gives layer/dense.c
#
# so a new plug-in is one file and one line: the same line feeds the registry (as an X-macro) and the build (here).  CMake runs
# again when the list changes.
function(plugin_list out def macro dir)
  get_filename_component(path ${def} ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(STRINGS ${path} lines REGEX "^${macro}\\(")
  set(files)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^${macro}\\(([a-z0-9_]+).*" "\\1" name "${line}")
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/${name}.c)
      message(FATAL_ERROR "${def} lists ${macro}(${name}), but there is no ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/${name}.c")
    endif()
    list(APPEND files ${dir}/${name}.c)
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()
