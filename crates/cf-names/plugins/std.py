"""`inmanta_plugins.std`: what the Python of other modules takes from that of `std`. Models get their own functions of `std` without Python."""

import os

from setpoint_plugins import values

__all__ = ["FactReference", "JinjaDynamicProxy", "determine_path", "get_file_content"]

# The project and its modules, once there are classes for them.
Module = Project = None


class FactReference(values.Reference):
    """A fact that is read when a resource is applied."""


class JinjaDynamicProxy(values.DynamicProxy):
    """Values of the model as templates in Python see them: as plugins do."""

    __slots__ = ()


def determine_path(ctx, module_dir, path):
    """`module/file`, `./file` of the module whose function is called, and `/file` of the project: in their directory of this name."""
    module, slash, inner = path.partition("/")
    if not slash:
        raise values.PluginException("`%s` does not say which module it is in: write `module/%s`, or `/%s` for the project" % (path, path, path))
    if not module:
        owner = Project.get().path
    else:
        known = Project.get().modules
        module = ctx._surroundings["module"] if module == "." else module
        if module not in known:
            raise values.PluginException("the path `%s` is in module `%s`, which the model does not import" % (path, module))
        owner = known[module].path
    return os.path.join(owner, module_dir, inner)


def get_file_content(ctx, module_dir, path):
    """The text of a file of a module or of the project."""
    filename = determine_path(ctx, module_dir, path)
    if not os.path.isfile(filename):
        raise values.PluginException("there is no file `%s`" % filename)
    with open(filename, encoding="utf-8") as file:
        return file.read()
