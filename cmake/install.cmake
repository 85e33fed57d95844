# What `make install` puts where: the tool, the library with its soname, the headers, foliage.pc, the manual pages,
# completion for bash.
install(TARGETS foliage_bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS foliage LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/foliage DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# The prefix is written when installing, because `cmake --install --prefix` may choose another one then.
set(FOLIAGE_PC_IN ${CMAKE_SOURCE_DIR}/cmake/foliage.pc.in)
install(CODE "
	set(PROJECT_VERSION \"${PROJECT_VERSION}\")
	set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
	set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
	set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
	configure_file(\"${FOLIAGE_PC_IN}\" \"${CMAKE_BINARY_DIR}/foliage.pc\" @ONLY)
")
install(FILES ${CMAKE_BINARY_DIR}/foliage.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Manual pages of the tool are its help texts, so the tool itself writes them.
set(FOLIAGE_MAN_DIR ${CMAKE_BINARY_DIR}/man1)
add_custom_command(OUTPUT ${FOLIAGE_MAN_DIR}/foliage.1
	COMMAND ${CMAKE_COMMAND} -E make_directory ${FOLIAGE_MAN_DIR}
	COMMAND foliage_bin --man-all ${FOLIAGE_MAN_DIR}
	DEPENDS foliage_bin
	COMMENT "Writing the manual pages")
add_custom_target(foliage_man ALL DEPENDS ${FOLIAGE_MAN_DIR}/foliage.1)
install(DIRECTORY ${FOLIAGE_MAN_DIR}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
	FILES_MATCHING PATTERN "*.1")
install(FILES man/libfoliage.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)

set(FOLIAGE_COMPLETION ${CMAKE_BINARY_DIR}/completion/foliage)
add_custom_command(OUTPUT ${FOLIAGE_COMPLETION}
	COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
	COMMAND foliage_bin --completion bash >${FOLIAGE_COMPLETION}
	DEPENDS foliage_bin
	COMMENT "Writing the completion")
add_custom_target(foliage_completion ALL DEPENDS ${FOLIAGE_COMPLETION})
install(FILES ${FOLIAGE_COMPLETION} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
