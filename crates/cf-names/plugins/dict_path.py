"""`inmanta.util.dict_path`: paths into nested dicts and lists of dicts.

`a.b` is the value under `b` in that under `a`; `a[k=v]` is the one element of the list under `a` whose `k` is `v`, and further brackets narrow
it. `.` is the whole. In a wild path, `*` stands for every key, `a[k=*]` and `a[*]` for every element. A backslash takes from a sign its meaning,
and `\\0` is null.
"""

__all__ = [
    "ComposedPath",
    "ContainerStructureException",
    "DictPath",
    "InDict",
    "InvalidPathException",
    "KeyedList",
    "NormalValue",
    "NullPath",
    "NullValue",
    "WildCardValue",
    "WildComposedPath",
    "WildDictPath",
    "WildInDict",
    "WildKeyedList",
    "WildNullPath",
    "to_path",
    "to_wild_path",
]

_SIGNS = "\\[].*=\0"


class InvalidPathException(Exception):
    """A text that is no path."""


class ContainerStructureException(Exception):
    """What a path leads through is not what it says."""


class NormalValue:
    """A key, or a value of a key: a text."""

    def __init__(self, value):
        self.value = value

    def escape(self):
        return "".join("\\" + sign if sign in _SIGNS else sign for sign in str(self.value))

    def matches(self, value):
        return value is not None and str(value) == str(self.value)

    def __eq__(self, other):
        return type(other) is type(self) and other.value == self.value

    def __hash__(self):
        return hash((type(self).__name__, self.value))


class NullValue(NormalValue):
    """Null, as the value of a key."""

    def __init__(self):
        super().__init__(None)

    def escape(self):
        return "\\0"

    def matches(self, value):
        return value is None


class WildCardValue(NormalValue):
    """Whatever is there."""

    def __init__(self):
        super().__init__("*")

    def escape(self):
        return "*"

    def matches(self, value):
        return True


def _value(of):
    return of if isinstance(of, NormalValue) else NullValue() if of is None else NormalValue(of)


class WildDictPath:
    """A path that may lead to many places."""

    def get_elements(self, container):
        return [element for _, element in self._find(container)]

    def resolve_wild_cards(self, container):
        """The paths to what is there."""
        return [path for path, _ in self._find(container)]

    def get_path_sections(self):
        return [self]

    def __add__(self, other):
        return _composed(self.get_path_sections() + other.get_path_sections())

    def __eq__(self, other):
        return isinstance(other, WildDictPath) and str(other) == str(self)

    def __hash__(self):
        return hash(str(self))

    def __repr__(self):
        return "%s(%r)" % (type(self).__name__, str(self))

    def to_str(self):
        return str(self)


class DictPath(WildDictPath):
    """A path that leads to one place."""

    def get_element(self, container, construct=False):
        """What is there. With `construct`, dicts and elements of lists that are missing are made."""
        found = self._find(container)
        if len(found) == 1:
            return found[0][1]
        if found:
            raise ContainerStructureException("%d elements are at `%s`" % (len(found), self))
        if construct:
            return self._construct(container)
        raise KeyError("nothing is at `%s`" % self)

    def _construct(self, container):
        self.set_element(container, {})
        return self.get_element(container)

    def get_elements(self, container):
        try:
            return [self.get_element(container)]
        except KeyError:
            return []


class WildNullPath(WildDictPath):
    """The whole."""

    def _find(self, container):
        return [(NullPath(), container)]

    def get_path_sections(self):
        return []

    def __str__(self):
        return "."


class NullPath(WildNullPath, DictPath):
    """The whole."""

    def get_element(self, container, construct=False):
        return container

    def set_element(self, container, value, construct=True):
        raise ContainerStructureException("`.` is the whole, which cannot be replaced")

    def remove(self, container):
        raise ContainerStructureException("`.` is the whole, which cannot be removed")


def _dict(container, path):
    if not isinstance(container, dict):
        raise ContainerStructureException("`%s` leads into a dict, not into a `%s`" % (path, type(container).__name__))
    return container


class WildInDict(WildDictPath):
    """What is under a key, or under every key."""

    def __init__(self, key):
        self.key = _value(key)

    def _find(self, container):
        entries = _dict(container, self).items()
        return [(InDict(key), element) for key, element in entries if self.key.matches(key)]

    def __str__(self):
        return self.key.escape()


class InDict(WildInDict, DictPath):
    """What is under a key."""

    def get_key(self):
        return self.key.value

    def set_element(self, container, value, construct=True):
        _dict(container, self)[self.get_key()] = value

    def remove(self, container):
        _dict(container, self).pop(self.get_key(), None)


class WildKeyedList(WildDictPath):
    """Elements of the list under a key."""

    def __init__(self, relation, key_value_pairs):
        self.relation = _value(relation)
        self.key_value_pairs = [(_value(key), _value(value)) for key, value in key_value_pairs]

    def _matches(self, element):
        if not isinstance(element, dict):
            raise ContainerStructureException("`%s` leads to a list of dicts, which has a `%s`" % (self, type(element).__name__))
        return all(
            any(key.matches(own) and value.matches(element[own]) for own in element) for key, value in self.key_value_pairs
        )

    def _find(self, container):
        found = []
        for relation, elements in _dict(container, self).items():
            if not self.relation.matches(relation):
                continue
            if not isinstance(elements, list):
                raise ContainerStructureException("`%s` leads to a list, not to a `%s`" % (self, type(elements).__name__))
            for element in elements:
                if self._matches(element):
                    pairs = [
                        (own, element[own]) for key, value in self.key_value_pairs for own in element if key.matches(own)
                    ]
                    found.append((KeyedList(relation, pairs), element))
        return found

    def __str__(self):
        pairs = ("[%s=%s]" % (key.escape(), value.escape()) for key, value in self.key_value_pairs)
        return self.relation.escape() + ("".join(pairs) or "[*]")


class KeyedList(WildKeyedList, DictPath):
    """An element of the list under a key."""

    def get_key(self):
        return self.relation.value

    def set_element(self, container, value, construct=True):
        elements = _dict(container, self).setdefault(self.get_key(), [])
        fitting = {key.value: own.value for key, own in self.key_value_pairs} | dict(_dict(value, self))
        at = [at for at, element in enumerate(elements) if self._matches(element)]
        if len(at) > 1:
            raise ContainerStructureException("%d elements are at `%s`" % (len(at), self))
        if not self._matches(fitting):
            raise ContainerStructureException("the keys of the new element are not those of `%s`" % self)
        if at:
            elements[at[0]] = fitting
        else:
            elements.append(fitting)

    def remove(self, container):
        elements = _dict(container, self).get(self.get_key(), [])
        elements[:] = [element for element in elements if not self._matches(element)]


class WildComposedPath(WildDictPath):
    """One path after the other."""

    def __init__(self, path=None, path_str=None):
        self.expanded_path = list(path) if path is not None else to_wild_path(path_str).get_path_sections()

    def get_path_sections(self):
        return list(self.expanded_path)

    def _find(self, container):
        found = [([], container)]
        for section in self.expanded_path:
            found = [
                (before + own.get_path_sections(), inner)
                for before, element in found
                for own, inner in section._find(element)
            ]
        return [(_composed(sections), element) for sections, element in found]

    def __str__(self):
        return ".".join(map(str, self.expanded_path)) or "."


class ComposedPath(WildComposedPath, DictPath):
    """One path after the other."""

    def __init__(self, path=None, path_str=None):
        super().__init__(path if path is not None else to_path(path_str).get_path_sections())

    def _before(self, container, construct):
        for section in self.expanded_path[:-1]:
            container = section.get_element(container, construct)
        return container

    def get_element(self, container, construct=False):
        if not self.expanded_path:
            return container
        return self.expanded_path[-1].get_element(self._before(container, construct), construct)

    def set_element(self, container, value, construct=True):
        if not self.expanded_path:
            return NullPath().set_element(container, value)
        self.expanded_path[-1].set_element(self._before(container, construct), value)

    def remove(self, container):
        if not self.expanded_path:
            return NullPath().remove(container)
        try:
            inner = self._before(container, False)
        except KeyError:
            return
        self.expanded_path[-1].remove(inner)


def _composed(sections):
    if not sections:
        return NullPath()
    if len(sections) == 1:
        return sections[0]
    is_wild = not all(isinstance(section, DictPath) for section in sections)
    return (WildComposedPath if is_wild else ComposedPath)(sections)


def _signs(text):
    """The signs of a text, each with whether it has a meaning of its own."""
    at = 0
    while at < len(text):
        if text[at] != "\\":
            yield text[at], text[at] in _SIGNS
        elif at + 1 == len(text):
            raise InvalidPathException("`%s` ends with a backslash that stands for nothing" % text)
        else:
            at += 1
            yield ("\\0", True) if text[at] == "0" else (text[at], False)
        at += 1


def _parts(signs, sign):
    """What stands between the signs of this meaning."""
    parts = [[]]
    for found in signs:
        if found == (sign, True):
            parts.append([])
        else:
            parts[-1].append(found)
    return parts


def _parse_value(signs, text):
    if signs == [("*", True)]:
        return WildCardValue()
    if signs == [("\\0", True)]:
        return NullValue()
    if not signs or any(means for _, means in signs):
        raise InvalidPathException("`%s` is no path: `%s` is no key" % (text, "".join(sign for sign, _ in signs)))
    return NormalValue("".join(sign for sign, _ in signs))


def _parse_section(signs, text):
    relation, *brackets = _parts(signs, "[")
    if not brackets:
        return WildInDict(_parse_value(relation, text))
    pairs = []
    for bracket in brackets:
        if not bracket or bracket[-1] != ("]", True):
            raise InvalidPathException("`%s` is no path: `]` is missing" % text)
        sides = _parts(bracket[:-1], "=")
        if sides == [[("*", True)]]:
            continue
        if len(sides) != 2:
            raise InvalidPathException("`%s` is no path: `[key=value]` is wanted" % text)
        pairs.append(tuple(_parse_value(side, text) for side in sides))
    return WildKeyedList(_parse_value(relation, text), pairs)


def _sections(text):
    """Dots inside of brackets separate nothing."""
    sections, depth = [[]], 0
    for sign, means in _signs(text):
        depth += {"[": 1, "]": -1}.get(sign, 0) if means else 0
        if (sign, means, depth) == (".", True, 0):
            sections.append([])
        else:
            sections[-1].append((sign, means and not (sign == "." and depth)))
    # A dot before the first key means nothing.
    return sections[1:] if sections[0] == [] else sections


def to_wild_path(inp):
    """The path that a text is; it may have wild cards."""
    if inp == ".":
        return WildNullPath()
    sections = [_parse_section(signs, inp) for signs in _sections(inp)]
    if not sections:
        raise InvalidPathException("an empty text is no path")
    tame = [_tame(section) for section in sections]
    return _composed([calm or wild for calm, wild in zip(tame, sections)])


def to_path(inp):
    """The path that a text is."""
    path = to_wild_path(inp)
    if inp == ".":
        return NullPath()
    if not isinstance(path, DictPath):
        raise InvalidPathException("`%s` leads to many places" % inp)
    return path


def _tame(section):
    """The section, if it leads to one place."""
    if isinstance(section, WildInDict):
        return None if isinstance(section.key, WildCardValue) else InDict(section.key)
    values = [section.relation] + [value for pair in section.key_value_pairs for value in pair]
    if not section.key_value_pairs or any(isinstance(value, WildCardValue) for value in values):
        return None
    return KeyedList(section.relation, section.key_value_pairs)
