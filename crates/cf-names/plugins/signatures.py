"""The decorator of plugins, and what their annotations say about arguments and results."""

import collections.abc
import inspect
import linecache
import typing

from setpoint_plugins import values

# Plugins by the name of the Python module that defines them, then by their own.
plugins = {}


class Context:
    """What a plugin can ask about the compiler that calls it."""

    def __init__(self, surroundings):
        self._surroundings = surroundings

    def get_environment_id(self):
        return self._surroundings["deployment"]

    def get_data_dir(self):
        import os

        directory = os.path.join(self._surroundings["directory"], "data", self._surroundings["module"])
        os.makedirs(directory, exist_ok=True)
        return directory

    def run_sync(self, function, timeout=5):
        import asyncio

        async def limited():
            return await asyncio.wait_for(function(), timeout)

        return asyncio.run(limited())

    def __getattr__(self, name):
        raise AttributeError("Setpoint's `Context` has no `%s`" % name)


class ModelType:
    """`Annotated[…, ModelType["std::Host"]]`: a type of the model in an annotation."""

    def __init__(self, model_type):
        self.model_type = model_type

    def __class_getitem__(cls, model_type):
        return cls(model_type)


class Plugin:
    """A function that models can call."""

    def __init__(self, function, name, allow_unknown):
        self.function = function
        self.name = name
        self.allow_unknown = allow_unknown
        self.deprecated = None
        # The parameter that takes the context, and its place if it can be given by position.
        self.context = None
        self.context_at = None

    def signature(self):
        parameters = []
        function = inspect.unwrap(self.function)
        types = _annotations(function)
        for parameter in inspect.signature(function).parameters.values():
            kind = _KINDS[parameter.kind]
            annotation = types.get(parameter.name, typing.Any)
            if annotation is Context:
                self.context = parameter.name
                self.context_at = len(parameters) if kind == "one" else None
                continue
            parameters.append(
                {
                    "name": parameter.name,
                    "takes": kind,
                    "type": model_type(annotation),
                    "optional": parameter.default is not parameter.empty,
                }
            )
        code = getattr(function, "__code__", None)
        line = code.co_firstlineno if code else 0
        # Its decorators stand before it.
        lines = linecache.getlines(code.co_filename) if code else []
        for at in range(line, min(line + 50, len(lines) + 1)):
            if lines[at - 1].lstrip().startswith(("def ", "async def ")):
                line = at
                break
        return {
            "name": self.name,
            "parameters": parameters,
            "result": model_type(types.get("return", typing.Any)),
            "allow_unknown": self.allow_unknown,
            "takes_context": self.context is not None,
            "deprecated": self.deprecated,
            "file": code.co_filename if code else "",
            "line": line,
        }


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "one",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "one",
    inspect.Parameter.VAR_POSITIONAL: "variadic",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "keywords",
}


def plugin(function=None, *_others, name=None, allow_unknown=False, **_keywords):
    """`@plugin`, `@plugin("name")`, `@plugin(allow_unknown=True)`."""

    def add(function, name=name):
        own = plugins.setdefault(function.__module__, {})
        made = Plugin(function, name or function.__name__, bool(allow_unknown))
        made.deprecated = getattr(function, "__setpoint_deprecated__", None)
        own[made.name] = made
        function.__setpoint_plugin__ = made
        return function

    if function is None:
        return add
    if isinstance(function, str):
        return lambda actual: add(actual, function)
    return add(function)


def deprecated(function=None, *, replaced_by=None, **_keywords):
    """`@deprecated`, above `@plugin` or below it."""

    def mark(function):
        function.__setpoint_deprecated__ = {"by": replaced_by}
        made = getattr(function, "__setpoint_plugin__", None)
        if made is not None:
            made.deprecated = function.__setpoint_deprecated__
        return function

    return mark if function is None else mark(function)


def reference(_name=None, *_others, **_keywords):
    """`@reference("module::Name")`: Setpoint has the references of `std` alone, so it stays a class."""
    return lambda cls: cls


def _annotations(function):
    """Annotations as they are meant: those that are kept as text because of a `__future__` import are evaluated."""
    found = dict(getattr(function, "__annotations__", {}))
    code = getattr(function, "__code__", None)
    import __future__

    if code is not None and code.co_flags & __future__.annotations.compiler_flag:
        for name, text in found.items():
            try:
                found[name] = eval(text, function.__globals__)
            except Exception:
                pass
    return found


_PRIMITIVES = {str: "string", int: "int", float: "float", bool: "bool"}
_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection, collections.abc.Iterable)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def model_type(annotation, depth=0):
    """The type of the model that an annotation means; what says nothing to the model means any."""
    if isinstance(annotation, str):
        return {"text": annotation}
    if annotation is None or annotation is type(None):
        return "null"
    if annotation is object:
        return "object"
    if isinstance(annotation, type) and annotation in _PRIMITIVES:
        return {"text": _PRIMITIVES[annotation]}
    if annotation in _LISTS or annotation in (typing.List, typing.Sequence):
        return {"list": None}
    if annotation in _DICTS or annotation in (typing.Dict, typing.Mapping):
        return {"dict": None}
    if isinstance(annotation, typing.ForwardRef):
        return {"text": annotation.__forward_arg__}
    if isinstance(annotation, values._ReferenceType):
        return {"reference": model_type(annotation.of, depth + 1)}
    if annotation is values.Reference:
        return {"reference": "any"}
    if depth > 50:
        return "any"
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, ModelType):
            return model_type(extra.model_type, depth + 1)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if getattr(annotation, "__metadata__", None):
        return model_type(annotation.__origin__, depth + 1)
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        return {"union": [model_type(part, depth + 1) for part in parts]}
    if origin is typing.Literal:
        return {"union": [model_type(type(part), depth + 1) for part in parts]}
    if origin in _LISTS:
        return {"list": model_type(parts[0], depth + 1)}
    if origin in _DICTS:
        return {"dict": model_type(parts[1], depth + 1)}
    supertype = getattr(annotation, "__supertype__", None)
    if supertype is not None:
        return model_type(supertype, depth + 1)
    return "any"
