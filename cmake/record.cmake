# foliage record: sources of events in the tool, and the library that it preloads. BPF needs libbpf; without it, and without
# privileges, the preloaded library and valgrind remain.
file(GLOB FOLIAGE_RECORD_SOURCES CONFIGURE_DEPENDS adapters/record/*.c)
list(FILTER FOLIAGE_RECORD_SOURCES EXCLUDE REGEX "/preload\\.c$")
target_sources(foliage_tool PRIVATE ${FOLIAGE_RECORD_SOURCES})
pkg_check_modules(LIBBPF IMPORTED_TARGET libbpf)
if(LIBBPF_FOUND)
	target_compile_definitions(foliage_tool PRIVATE HAVE_LIBBPF=1)
	target_link_libraries(foliage_tool PUBLIC PkgConfig::LIBBPF)
else()
	message(WARNING "libbpf was not found: foliage record works by preloading only")
endif()
# Where record looks for the library when it is not beside the tool; from the prefix, which may change when installing.
target_compile_definitions(foliage_tool PRIVATE FOLIAGE_LIBRARY_DIR="${CMAKE_INSTALL_LIBDIR}/foliage")

add_library(foliage_record SHARED adapters/record/preload.c)
set_target_properties(foliage_record PROPERTIES OUTPUT_NAME foliage-record INTERPROCEDURAL_OPTIMIZATION OFF)
target_link_libraries(foliage_record PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
install(TARGETS foliage_record LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/foliage)
