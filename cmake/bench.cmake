# Programs of bench/: built on demand, `make bench` runs them.
file(GLOB FOLIAGE_BENCHES CONFIGURE_DEPENDS bench/*.c)
list(FILTER FOLIAGE_BENCHES EXCLUDE REGEX "bench/sqlite\\.c$") # cmake/adapters.cmake
add_custom_target(benches)
foreach(source ${FOLIAGE_BENCHES})
	get_filename_component(name ${source} NAME_WE)
	add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
	target_link_libraries(bench_${name} PRIVATE foliage_tool)
	target_compile_definitions(bench_${name} PRIVATE FOLIAGE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
	add_dependencies(benches bench_${name})
endforeach()
