# Compiles tables of data/ into the tool: each file becomes a zero-terminated `const char NAME[]`,
# declared in workload/data.h. With BINARY it becomes `const unsigned char NAME[]` and `const size_t NAME_bytes`.
# Include after the target foliage_tool exists.
#
# The same file is the generator: `cmake -DNAME=... -DINPUT=... -DOUTPUT=... -P cmake/data.cmake`.
if(CMAKE_SCRIPT_MODE_FILE)
	file(READ ${INPUT} hex HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
	# Lines of 16 bytes.
	string(REGEX REPLACE "(................................................................................)"
		"\\1\n" bytes "${bytes}")
	if(BINARY)
		string(LENGTH "${hex}" digits)
		math(EXPR size "${digits} / 2")
		file(WRITE ${OUTPUT} "#include \"workload/data.h\"\n\nconst size_t ${NAME}_bytes = ${size};\n"
			"const unsigned char ${NAME}[] = {\n${bytes}\n};\n")
		return()
	endif()
	file(WRITE ${OUTPUT}
		"#include \"workload/data.h\"\n\nconst char ${NAME}[] = {\n${bytes}0\n};\n")
	return()
endif()

function(foliage_embed name file)
	set(output ${CMAKE_BINARY_DIR}/generated/${name}.c)
	add_custom_command(OUTPUT ${output}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
		COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DINPUT=${CMAKE_SOURCE_DIR}/${file} -DOUTPUT=${output}
			-DBINARY=${ARGN} -P ${CMAKE_SOURCE_DIR}/cmake/data.cmake
		DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/data.cmake
		COMMENT "Embedding ${file}")
	target_sources(foliage_tool PRIVATE ${output})
endfunction()

foliage_embed(data_published data/published.csv)
foliage_embed(data_kernel_612 data/kernel-6.12.csv)
foliage_embed(data_kernel_newer data/kernel-newer.csv)
foliage_embed(data_real_kbuild data/real-kbuild.foliage.zst BINARY)
foliage_embed(data_real_sqlite_grep data/real-sqlite-grep.foliage.zst BINARY)
