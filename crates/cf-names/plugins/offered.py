"""The Python packages that modules of models import: `inmanta` as far as plugins need it, and `inmanta_plugins` with the modules themselves.

What only handlers of resources need (`inmanta.resources`, `inmanta.agent` and so on) is there without doing anything, so that a file that has
both can be imported: its classes can be extended, its decorators give back what they decorate. A plugin that uses it while it is called
fails.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

from setpoint_plugins import channel, signatures, values

# Directories of modules with Python, by the name of the module, and of the project.
directories = {}
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
        return _inert_attribute(self.__name__, name)


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
    "inmanta.references": {"Reference": values.Reference},
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
        if not rest:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        directory = directories.get(rest)
        if directory is None:
            return None
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


def install():
    sys.meta_path.insert(0, Finder())
