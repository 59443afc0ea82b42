# What `cmake --install` puts where, and how others find it: pkg-config and find_package(hollow).
# The installed tree may be moved: no file in it names its own place.
include(CMakePackageConfigHelpers)

# The names that users see, the same after add_subdirectory and after find_package.
set_target_properties(hollow_shared PROPERTIES EXPORT_NAME hollow)
add_library(hollow::hollow ALIAS hollow_shared)
add_library(hollow::hollow_static ALIAS hollow_static)

# Two export sets: users of the shared library need none of our dependencies.
foreach(kind shared static)
  install(TARGETS hollow_${kind} EXPORT hollow_${kind}_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT hollow_${kind}_targets NAMESPACE hollow:: FILE hollow-${kind}.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hollow)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hollow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS hollow_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/completion/hollow DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/completion/_hollow DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(TARGETS hollow_bench hollow_paper RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hollow)
if(TARGET hollow_mpi)
  install(TARGETS hollow_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hollow)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/hollow.1)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/hollow.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hollow-config.cmake.in ${PROJECT_BINARY_DIR}/hollow-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hollow)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hollow-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hollow-config.cmake ${PROJECT_BINARY_DIR}/hollow-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/hollow-sundials.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hollow)

# In hollow.pc all paths start at ${pcfiledir}, the directory it lies in.
file(RELATIVE_PATH HL_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" HL_PC_PREFIX "${HL_PC_PREFIX}")
file(RELATIVE_PATH HL_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH HL_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(HL_PC_LIBS_PRIVATE ${ZLIB_STATIC_LDFLAGS} -lsundials_cvodes -lsundials_kinsol)
if(HL_SUNDIALS_CORE)
  list(APPEND HL_PC_LIBS_PRIVATE -lsundials_core ${MPI_C_LIBRARIES})
endif()
list(JOIN HL_PC_LIBS_PRIVATE " " HL_PC_LIBS_PRIVATE)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hollow.pc.in ${PROJECT_BINARY_DIR}/hollow.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hollow.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
