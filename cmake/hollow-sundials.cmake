# hollow::sundials - CVODES and KINSOL, from 6.4 (one library for each) to 7 (which adds a core). By hand, as the package that
# SUNDIALS installs wants the development files of all that it was built with. Also part of the installed package.
if(NOT TARGET hollow::sundials)
  find_path(HL_SUNDIALS_INCLUDE cvodes/cvodes.h)
  find_library(HL_SUNDIALS_CVODES sundials_cvodes)
  find_library(HL_SUNDIALS_KINSOL sundials_kinsol)
  find_library(HL_SUNDIALS_CORE sundials_core)
  mark_as_advanced(HL_SUNDIALS_INCLUDE HL_SUNDIALS_CVODES HL_SUNDIALS_KINSOL HL_SUNDIALS_CORE)
  set(HL_SUNDIALS_VERSION 0)
  if(HL_SUNDIALS_INCLUDE AND EXISTS ${HL_SUNDIALS_INCLUDE}/sundials/sundials_config.h)
    file(STRINGS ${HL_SUNDIALS_INCLUDE}/sundials/sundials_config.h HL_SUNDIALS_LINE REGEX "define SUNDIALS_VERSION \"")
    string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+" HL_SUNDIALS_VERSION "${HL_SUNDIALS_LINE}")
    file(STRINGS ${HL_SUNDIALS_INCLUDE}/sundials/sundials_config.h HL_SUNDIALS_MPI REGEX "define SUNDIALS_MPI_ENABLED 1")
    if(HL_SUNDIALS_MPI AND HL_SUNDIALS_VERSION VERSION_GREATER_EQUAL 7) # its headers include mpi.h, as those of Debian 13 do
      find_package(MPI COMPONENTS C REQUIRED)
    endif()
  endif()
  if(HL_SUNDIALS_CVODES AND HL_SUNDIALS_KINSOL AND HL_SUNDIALS_VERSION VERSION_GREATER_EQUAL 6.4)
    add_library(hollow::sundials INTERFACE IMPORTED)
    target_include_directories(hollow::sundials SYSTEM INTERFACE ${HL_SUNDIALS_INCLUDE})
    target_link_libraries(hollow::sundials INTERFACE ${HL_SUNDIALS_CVODES} ${HL_SUNDIALS_KINSOL}
      $<$<BOOL:${HL_SUNDIALS_CORE}>:${HL_SUNDIALS_CORE}> $<TARGET_NAME_IF_EXISTS:MPI::MPI_C>)
  endif()
endif()
