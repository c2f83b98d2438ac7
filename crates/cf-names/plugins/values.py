"""Values of the model as plugins see them, and what plugins answer as values of the model.

Texts, numbers, booleans and null are Python's own. Lists and dicts are read-only, and so are views of instances, which ask the compiler for
each attribute when it is read.
"""

import dataclasses
import typing

from setpoint_plugins import channel

# Deeper than that nothing crosses.
DEEPEST = 60


class CompilerException(Exception):
    """An error of the model."""

    def __init__(self, msg=""):
        super().__init__(msg)
        self.msg = msg


class RuntimeException(CompilerException):
    """An error while the model is executed."""

    def __init__(self, stmt=None, msg=""):
        super().__init__(msg if msg or not isinstance(stmt, str) else stmt)
        self.stmt = stmt


class TypingException(RuntimeException):
    """A value of the wrong type."""


class NotFoundException(RuntimeException):
    """Something that the model does not have."""


class AttributeNotFound(NotFoundException, AttributeError):
    """An attribute that an entity does not have."""


class OptionalValueException(RuntimeException):
    """An optional relation without a value was read."""

    def __init__(self, instance=None, attribute=None):
        super().__init__(None, "optional variable accessed that has no value (attribute `%s` of `%s`)" % (attribute, instance))
        self.instance = instance
        self.attribute = attribute


class UnsetException(RuntimeException):
    """Something was read that has no value yet: the call is made again when it has."""


class UnknownException(Exception):
    """Something was read that is not known: neither is the result."""

    def __init__(self, unknown):
        super().__init__("a value is not known")
        self.unknown = unknown


class PluginException(CompilerException):
    """An error that a plugin tells the users of the model."""

    def __init__(self, message=""):
        super().__init__(message)
        self.message = message


class Unknown:
    """A value that is not known."""

    def __init__(self, source=None):
        self.source = source
        self._number = None

    def __repr__(self):
        return "Unknown"


class Reference:
    """A value that is only known on the machine, when a resource is applied."""

    def __init__(self, *_arguments, **_keywords):
        raise PluginException("plugins cannot make references: `std::create_environment_reference` and others of `std` do")

    def __class_getitem__(cls, item):
        return _ReferenceType(item)

    def __repr__(self):
        return "Reference"


class _ReferenceType:
    """`Reference[…]`, in annotations and as the base of a class."""

    def __init__(self, of):
        self.of = of

    def __call__(self, *arguments, **keywords):
        return Reference(*arguments, **keywords)

    def __mro_entries__(self, _bases):
        return (Reference,)

    # `typing.Union` takes what can be called.
    def __or__(self, other):
        return typing.Union[self, other]

    def __ror__(self, other):
        return typing.Union[other, self]


def _refuse(what):
    def refused(self, *_arguments, **_keywords):
        raise TypeError("a %s of the model cannot be changed: make a copy" % what)

    return refused


def _known(value):
    if type(value) is Unknown:
        raise UnknownException(value)
    return value


class SequenceProxy(list):
    """A list of the model."""

    __slots__ = ()

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse("list")
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse("list")

    def __reduce_ex__(self, _protocol):
        return (list, (list(self),))

    def __copy__(self):
        return list(self)

    def __hash__(self):
        return id(self)


class _PartlyKnownSequence(SequenceProxy):
    """A list with elements that are not known: reading one makes the result of the plugin unknown."""

    __slots__ = ()

    def __iter__(self):
        for value in list.__iter__(self):
            yield _known(value)

    def __reversed__(self):
        for value in list.__reversed__(self):
            yield _known(value)

    def __getitem__(self, at):
        found = list.__getitem__(self, at)
        return sequence(found) if isinstance(at, slice) else _known(found)

    def __contains__(self, value):
        return any(value == own for own in self)

    def __eq__(self, other):
        return list(self) == other

    def __ne__(self, other):
        return list(self) != other

    def __add__(self, other):
        return list(self) + list(other)

    def __radd__(self, other):
        return list(other) + list(self)

    def __mul__(self, count):
        return list(self) * count

    __rmul__ = __mul__
    __hash__ = SequenceProxy.__hash__

    def __repr__(self):
        return "[%s]" % ", ".join(repr(value) for value in list.__iter__(self))

    def copy(self):
        return list(self)

    def count(self, value):
        return list(self).count(value)

    def index(self, *arguments):
        return list(self).index(*arguments)


def sequence(values):
    values = list(values)
    partly = any(type(value) is Unknown for value in values)
    return (_PartlyKnownSequence if partly else SequenceProxy)(values)


class DictProxy(dict):
    """A dict of the model."""

    __slots__ = ()

    pop = popitem = clear = update = setdefault = _refuse("dict")
    __setitem__ = __delitem__ = __ior__ = _refuse("dict")

    def __reduce_ex__(self, _protocol):
        return (dict, (dict(self),))

    def __copy__(self):
        return dict(self)

    def __hash__(self):
        return id(self)


class _PartlyKnownDict(DictProxy):
    """A dict with values that are not known: reading one makes the result of the plugin unknown."""

    __slots__ = ()

    # That it is there makes `dict(…)` and `{**…}` read it through `__getitem__`.
    def __iter__(self):
        return dict.__iter__(self)

    def __getitem__(self, key):
        return _known(dict.__getitem__(self, key))

    def get(self, key, default=None):
        return self[key] if key in self else default

    def values(self):
        return [self[key] for key in dict.__iter__(self)]

    def items(self):
        return [(key, self[key]) for key in dict.__iter__(self)]

    def copy(self):
        return dict(self.items())

    def __eq__(self, other):
        return self.copy() == other

    def __ne__(self, other):
        return self.copy() != other

    def __or__(self, other):
        return {**self.copy(), **other}

    def __ror__(self, other):
        return {**other, **self.copy()}

    __hash__ = DictProxy.__hash__

    def __repr__(self):
        return "{%s}" % ", ".join("%r: %r" % item for item in dict.items(self))


class EntityType:
    """The entity of an instance."""

    def __init__(self, name):
        self._name = name

    def get_full_name(self):
        return self._name

    def type_string(self):
        return self._name

    @property
    def name(self):
        return self._name.rsplit("::", 1)[-1]

    def __str__(self):
        return self._name

    def __eq__(self, other):
        return isinstance(other, EntityType) and other._name == self._name

    def __hash__(self):
        return hash(self._name)


# What was read of instances during this call: it does not change any more.
_read = {}


def forget():
    _read.clear()


class DynamicProxy:
    """An instance of an entity."""

    __slots__ = ("_number", "_entity", "__weakref__")

    def __init__(self, *_arguments, **_keywords):
        raise TypeError("plugins cannot make instances: a constructor of the model does")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        key = (self._number, name)
        if key not in _read:
            _read[key] = self._ask(name)
        return _known(_read[key])

    def _ask(self, name):
        answer = channel.ask({"read": [self._number, name]})
        if "value" in answer:
            return decode(answer["value"])
        if "unset" in answer:
            raise UnsetException(None, "attribute `%s` of `%s` has no value yet" % (name, self._entity))
        if "absent" in answer:
            raise OptionalValueException(self._entity, name)
        raise AttributeNotFound(None, "could not find attribute `%s` on type `%s`" % (name, self._entity))

    def __setattr__(self, name, value):
        raise TypeError("an instance of the model cannot be changed: the model assigns attributes")

    __delattr__ = __setattr__

    def __eq__(self, other):
        return isinstance(other, DynamicProxy) and other._number == self._number

    def __hash__(self):
        return hash(("instance", self._number))

    def __repr__(self):
        return "@%s %d" % (self._entity, self._number)

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self

    def __reduce_ex__(self, _protocol):
        raise TypeError("an instance of the model lives only in the model")

    def _type(self):
        return EntityType(self._entity)

    def _get_instance(self):
        return self

    def is_unknown(self):
        return False

    @classmethod
    def return_value(cls, value, **_keywords):
        return _known(value)

    @classmethod
    def unwrap(cls, value):
        return value


def _instance(number, entity):
    made = DynamicProxy.__new__(DynamicProxy)
    object.__setattr__(made, "_number", number)
    object.__setattr__(made, "_entity", entity)
    return made


def decode(value):
    if isinstance(value, list):
        return sequence(decode(part) for part in value)
    if not isinstance(value, dict):
        return value
    ((sort, content),) = value.items()
    if sort == "dict":
        entries = [(content[at], decode(content[at + 1])) for at in range(0, len(content), 2)]
        partly = any(type(part) is Unknown for _, part in entries)
        return (_PartlyKnownDict if partly else DictProxy)(entries)
    if sort == "instance":
        return _instance(*content)
    if sort == "float":
        return float(content)
    made = Unknown() if sort == "unknown" else Reference.__new__(Reference)
    made._number = content
    return made


class NoValue(Exception):
    """What a plugin answered is no value of the model."""


def encode(value, depth=0):
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise NoValue("holds a text that is not Unicode: it has half of a surrogate pair")
        return text
    if isinstance(value, int):
        number = int(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise NoValue("holds a whole number beyond 64 bits")
        return number
    if isinstance(value, float):
        number = float(value)
        return number if number - number == 0 else {"float": repr(number)}
    if depth >= DEEPEST:
        raise NoValue("nests deeper than %d lists and dicts, or holds itself" % DEEPEST)
    if isinstance(value, (list, tuple)):
        return [encode(part, depth + 1) for part in (list.__iter__(value) if isinstance(value, list) else value)]
    if isinstance(value, dict):
        content = []
        for key, part in dict.items(value):
            content += [_key(key), encode(part, depth + 1)]
        return {"dict": content}
    if isinstance(value, DynamicProxy):
        return {"instance": [value._number, value._entity]}
    if isinstance(value, Unknown):
        return {"unknown": value._number}
    if isinstance(value, Reference):
        return {"reference": value._number}
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith("inmanta_plugins."):
        namespace = type(value).__module__[len("inmanta_plugins.") :].replace(".", "::")
        fields = []
        for field in dataclasses.fields(value):
            fields += [field.name, encode(getattr(value, field.name), depth + 1)]
        return {"record": [namespace + "::" + type(value).__name__, fields]}
    advice = {"set": ": make a sorted list of it", "frozenset": ": make a sorted list of it", "generator": ": make a list of it"}
    name = type(value).__name__
    raise NoValue("holds a value of Python's type `%s`, which the model does not know%s" % (name, advice.get(name, "")))


def _key(key):
    if not isinstance(key, str):
        raise NoValue("holds a dict with a key of Python's type `%s`: keys are texts" % type(key).__name__)
    return encode(key)
