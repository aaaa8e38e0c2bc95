# StrettoWheel.cmake - what the Python wheel holds beside its modules: the library and the program, below the folder of the package.
# scikit-build-core (bindings/python/pyproject.toml) installs the component `python` alone.  A wheel has no links: one file of the library.
install(FILES $<TARGET_FILE:stretto_shared> DESTINATION lib RENAME libstretto.so.1 COMPONENT python)
install(TARGETS stretto RUNTIME DESTINATION bin COMPONENT python)
