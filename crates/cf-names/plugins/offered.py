"""The Python packages that modules of models import: `inmanta` as far as plugins need it, and `inmanta_plugins` with the modules themselves.

What only handlers of resources need (`inmanta.resources`, `inmanta.agent` and so on) is there without doing anything, so that a file that has
both can be imported: its classes can be extended, its decorators give back what they decorate. A plugin that uses it while it is called
fails.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

from setpoint_plugins import channel, dict_path, signatures, std, values

# Directories of modules with Python, by the name of the module: those that the model imports, and those that Python has imported.
directories = {}
# Directories in which further modules are found.
module_path = []
project = {"directory": "", "name": ""}


class _Inert(type):
    """Classes that stand for what is not offered."""

    def __getattr__(cls, name):
        return _inert_attribute(cls.__qualname__, name)

    def __call__(cls, *arguments, **keywords):
        _refuse_in_call(cls)
        if cls.__dict__.get("_is_own"):
            if len(arguments) == 1 and not keywords and isinstance(arguments[0], (type, types.FunctionType)):
                return arguments[0]
            return _Decorator()
        return super().__call__(*arguments, **keywords)

    def __getitem__(cls, _item):
        return cls

    def __or__(cls, _other):
        return cls

    __ror__ = __or__


class _Decorator:
    """What calling something that is not offered gives."""

    def __call__(self, *arguments, **_keywords):
        return arguments[0] if len(arguments) == 1 else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _inert_attribute(owner, name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Inert(name, (), {"_is_own": True, "__module__": owner, "__qualname__": owner + "." + name})


def _refuse_in_call(cls):
    if channel.in_call and cls.__dict__.get("_is_own"):
        raise values.PluginException("Setpoint has no `%s` for plugins" % cls.__qualname__)


class _InertModule(types.ModuleType):
    def __getattr__(self, name):
        if name == "__path__" or name.startswith("__"):
            raise AttributeError(name)
        inner = self.__name__ + "." + name
        return importlib.import_module(inner) if inner in _OFFERED else _inert_attribute(self.__name__, name)


class Project:
    """The project whose model is compiled."""

    @classmethod
    def get(cls, *_arguments, **_keywords):
        return cls()

    @property
    def path(self):
        return project["directory"]

    _path = project_path = path

    @property
    def name(self):
        return project["name"]

    @property
    def modules(self):
        return {name: Module(name) for name in directories}


class Module:
    """A module of that project."""

    def __init__(self, name):
        self.name = name

    @property
    def path(self):
        directory = directories[self.name]
        parent = os.path.dirname(directory)
        if os.path.basename(directory) == "plugins":
            return parent
        installed = os.path.exists(os.path.join(directory, "setup.cfg"))
        return directory if installed else os.path.dirname(parent)

    _path = path

    def get_plugin_dir(self):
        return directories[self.name]


_OFFERED = {
    "inmanta.plugins": {
        "plugin": signatures.plugin,
        "deprecated": signatures.deprecated,
        "Context": signatures.Context,
        "ModelType": signatures.ModelType,
        "PluginException": values.PluginException,
    },
    "inmanta.references": {"Reference": values.Reference, "reference": signatures.reference},
    "inmanta.execute.util": {"Unknown": values.Unknown},
    "inmanta.execute.proxy": {
        name: getattr(values, name)
        for name in ("DynamicProxy", "SequenceProxy", "DictProxy", "UnknownException", "AttributeNotFound")
    },
    "inmanta.ast": {
        name: getattr(values, name)
        for name in (
            "CompilerException",
            "RuntimeException",
            "TypingException",
            "NotFoundException",
            "OptionalValueException",
            "UnsetException",
            "PluginException",
        )
    },
    "inmanta.module": {"Project": Project, "Module": Module},
    "inmanta.export": {"unknown_parameters": []},
    "inmanta.util.dict_path": {name: getattr(dict_path, name) for name in dict_path.__all__},
    "inmanta_plugins.std": {name: getattr(std, name) for name in std.__all__},
}
_OFFERED["inmanta.plugins"].update(
    {
        name: getattr(values, name)
        for name in ("DynamicProxy", "Unknown", "UnknownException", "UnsetException", "RuntimeException")
    }
)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `inmanta` and `inmanta_plugins`, before any that is installed."""

    def find_spec(self, name, path=None, target=None):
        first, _, rest = name.partition(".")
        if first == "inmanta":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if first != "inmanta_plugins":
            return None
        if not rest or rest == "std":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if "." in rest:
            return None
        directory = directories.get(rest) or _find(rest)
        if directory is None:
            return None
        directories[rest] = directory
        file = os.path.join(directory, "__init__.py")
        if not os.path.exists(file):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations.append(directory)
            return spec
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[directory])

    def create_module(self, spec):
        return types.ModuleType(spec.name) if spec.name == "inmanta_plugins" else _InertModule(spec.name)

    def exec_module(self, module):
        module.__dict__.update(_OFFERED.get(module.__name__, {}))


def _find(module):
    """The directory of the Python of a module that the model does not import."""
    package = "inmanta-module-" + module.replace("_", "-")
    layouts = (
        os.path.join(module),
        os.path.join(module, "inmanta_plugins", module),
        os.path.join(package, "inmanta_plugins", module),
        os.path.join("inmanta_plugins", module),
        os.path.join(module, "plugins"),
    )
    for entry in module_path + sys.path:
        for layout in layouts:
            directory = os.path.join(entry, layout)
            if os.path.isfile(os.path.join(directory, "__init__.py")):
                return directory
    return None


def install():
    std.Module = Module
    std.Project = Project
    sys.meta_path.insert(0, Finder())
