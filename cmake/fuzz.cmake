# libFuzzer targets: one for each trace format, and one for every other fuzz/fuzz_*.c. They compile the sources
# again, instrumented; the rest of the build is not touched.
if(FOLIAGE_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
		message(FATAL_ERROR "FOLIAGE_FUZZ needs clang: cmake -DCMAKE_C_COMPILER=clang-14")
	endif()
	set(fuzz_tool_sources ${FOLIAGE_TOOL_SOURCES})
	list(FILTER fuzz_tool_sources INCLUDE REGEX "/trace/")
	add_library(foliage_fuzz OBJECT ${FOLIAGE_LIB_SOURCES} ${fuzz_tool_sources})
	target_compile_options(foliage_fuzz PUBLIC -g -O1 -fno-omit-frame-pointer
		-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
	target_compile_definitions(foliage_fuzz PRIVATE
		$<$<BOOL:${ZLIB_FOUND}>:HAVE_ZLIB=1> $<$<BOOL:${LIBLZMA_FOUND}>:HAVE_LZMA=1>
		$<$<BOOL:${ZSTD_FOUND}>:HAVE_ZSTD=1>)
	target_link_libraries(foliage_fuzz PUBLIC Threads::Threads m ${CMAKE_DL_LIBS}
		$<$<BOOL:${ZLIB_FOUND}>:ZLIB::ZLIB> $<$<BOOL:${LIBLZMA_FOUND}>:LibLZMA::LibLZMA>
		$<$<BOOL:${ZSTD_FOUND}>:PkgConfig::ZSTD>)

	function(foliage_add_fuzzer name source)
		add_executable(${name} ${source})
		target_link_libraries(${name} PRIVATE foliage_fuzz)
		target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
	endfunction()

	foreach(format auto foliage foliage-partial oracle vscsi csv text u32 u64 lis iolog address)
		foliage_add_fuzzer(fuzz_trace_${format} fuzz/fuzz_trace_reader.c)
		target_compile_definitions(fuzz_trace_${format} PRIVATE FUZZ_FORMAT="${format}")
	endforeach()
	file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)
	list(FILTER fuzz_sources EXCLUDE REGEX "fuzz_trace_reader\\.c$")
	foreach(source ${fuzz_sources})
		get_filename_component(name ${source} NAME_WE)
		foliage_add_fuzzer(${name} ${source})
	endforeach()
endif()
