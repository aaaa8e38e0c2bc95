# StrettoWheel.cmake - what the Python wheel holds beside its modules: the library and the program, below the folder of the package.
# scikit-build-core (bindings/python/pyproject.toml) installs the component `python` alone.
install(TARGETS stretto_shared LIBRARY DESTINATION lib NAMELINK_SKIP COMPONENT python)
install(TARGETS stretto RUNTIME DESTINATION bin COMPONENT python)
