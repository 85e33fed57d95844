# Floors, from the bottom: base < mm < machine < trace, workload < cli. Every folder is a glob, so that a new
# policy or subcommand is one file and one line in its table.
option(FOLIAGE_WERROR "Treat warnings as errors" OFF)
option(FOLIAGE_DEBUG_VALID "Run the validity walkers at every aging" OFF)
option(FOLIAGE_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(FOLIAGE_SANITIZE "" CACHE STRING "address,undefined or thread")

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
	-fvisibility=hidden -fno-strict-aliasing)
if(FOLIAGE_WERROR)
	add_compile_options(-Werror)
endif()
if(FOLIAGE_DEBUG_VALID)
	add_compile_definitions(FOLIAGE_DEBUG_VALID=1)
endif()
if(FOLIAGE_SANITIZE)
	# A finding of the undefined-behaviour sanitizer is an error, not a line in a log.
	add_compile_options(-fsanitize=${FOLIAGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${FOLIAGE_SANITIZE})
	if(FOLIAGE_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		# It does not model fences and says so at each one. It may see a race too many for that, never one too few.
		add_compile_options(-Wno-tsan)
	endif()
endif()
include_directories(${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR})
add_compile_definitions(_GNU_SOURCE FOLIAGE_VERSION="${PROJECT_VERSION}")

# Across files the miss path is one function: about a fifth faster.
include(CheckIPOSupported)
check_ipo_supported(RESULT FOLIAGE_IPO OUTPUT FOLIAGE_IPO_WHY LANGUAGES C)
if(FOLIAGE_IPO AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT FOLIAGE_SANITIZE AND NOT FOLIAGE_FUZZ)
	set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
	if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
		add_compile_options(-ffat-lto-objects) # the tests link without
	endif()
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(ZLIB)
find_package(LibLZMA)
pkg_check_modules(ZSTD IMPORTED_TARGET libzstd)
pkg_check_modules(JSONC IMPORTED_TARGET json-c)
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)

file(GLOB FOLIAGE_LIB_SOURCES CONFIGURE_DEPENDS base/*.c mm/*.c mm/reference/*.c machine/*.c cache/*.c)
file(GLOB FOLIAGE_TOOL_SOURCES CONFIGURE_DEPENDS trace/*.c workload/*.c cli/*.c)
list(FILTER FOLIAGE_TOOL_SOURCES EXCLUDE REGEX "cli/main\\.c$")

# One set of objects serves the shared library, the tool and the tests (which look inside).
add_library(foliage_objects OBJECT ${FOLIAGE_LIB_SOURCES})
set_target_properties(foliage_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(foliage_objects PUBLIC Threads::Threads)

add_library(foliage SHARED $<TARGET_OBJECTS:foliage_objects>)
set_target_properties(foliage PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_libraries(foliage PUBLIC Threads::Threads m ${CMAKE_DL_LIBS})

add_library(foliage_tool STATIC ${FOLIAGE_TOOL_SOURCES} $<TARGET_OBJECTS:foliage_objects>)
target_link_libraries(foliage_tool PUBLIC Threads::Threads m ${CMAKE_DL_LIBS})
if(ZLIB_FOUND)
	target_compile_definitions(foliage_tool PRIVATE HAVE_ZLIB=1)
	target_link_libraries(foliage_tool PUBLIC ZLIB::ZLIB)
endif()
if(LIBLZMA_FOUND)
	target_compile_definitions(foliage_tool PRIVATE HAVE_LZMA=1)
	target_link_libraries(foliage_tool PUBLIC LibLZMA::LibLZMA)
endif()
if(ZSTD_FOUND)
	target_compile_definitions(foliage_tool PRIVATE HAVE_ZSTD=1)
	target_link_libraries(foliage_tool PUBLIC PkgConfig::ZSTD)
endif()
if(JSONC_FOUND)
	target_compile_definitions(foliage_tool PRIVATE HAVE_JSONC=1)
	target_link_libraries(foliage_tool PUBLIC PkgConfig::JSONC)
endif()

add_executable(foliage_bin cli/main.c)
set_target_properties(foliage_bin PROPERTIES OUTPUT_NAME foliage)
target_link_libraries(foliage_bin PRIVATE foliage_tool)

include(cmake/data.cmake)
include(cmake/fuzz.cmake)
include(cmake/bench.cmake)
include(cmake/tests.cmake)
include(cmake/install.cmake)
include(cmake/adapters.cmake)
