"""Answers the compiler: which functions a module has, and what a call of one gives."""

import os
import sys
import traceback

from setpoint_plugins import channel, offered, signatures, values

_project = {}
_printer = channel.Printer()


def main():
    _project.update(channel.receive())
    offered.project.update(_project)
    offered.directories.update(_project["modules"])
    offered.module_path.extend(_project["module_path"])
    offered.install()
    sys.stdout = _printer
    sys.argv = ["setpoint"]
    while True:
        message = channel.receive()
        answer = _load(message["load"]) if "load" in message else _call(message["call"])
        _printer.end_line()
        try:
            channel.send(answer)
        except channel.TooLong as refused:
            channel.send({"refused": "cannot be taken: " + str(refused)})
        except (MemoryError, RecursionError):
            channel.send({"refused": "is too large for the memory that plugins have"})


def _load(module):
    """Imports what a module has in Python."""
    directory = offered.directories[module]
    package = "inmanta_plugins." + module
    failed = []
    for name, file in _files(package, directory):
        try:
            __import__(name)
        except BaseException as error:
            failed.append(_describe(error, at=file))
            signatures.plugins.pop(name, None)
            if name == package:
                break
    functions = []
    for owner, plugins in signatures.plugins.items():
        if owner != package and not owner.startswith(package + "."):
            continue
        namespace = owner[len("inmanta_plugins.") :].replace(".", "::")
        for name, plugin in plugins.items():
            try:
                signature = plugin.signature()
            except Exception as error:
                failed.append(_describe(error))
                continue
            signature["namespace"] = namespace
            functions.append(signature)
    return {"functions": functions, "failed": failed}


def _files(package, directory):
    """The Python files of a package, those of packages in it included: their names as modules and their paths."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return
    own = [entry for entry in entries if entry.name == "__init__.py"]
    for entry in own + [entry for entry in entries if entry not in own]:
        stem, ending = os.path.splitext(entry.name)
        if ending == ".py" and entry.is_file():
            yield (package if stem == "__init__" else package + "." + stem), entry.path
        elif entry.is_dir(follow_symlinks=False) and os.path.exists(os.path.join(entry.path, "__init__.py")):
            yield from _files(package + "." + entry.name, entry.path)


def _call(call):
    module = "inmanta_plugins." + call["namespace"].replace("::", ".")
    plugin = signatures.plugins[module][call["name"]]
    values.forget()
    channel.in_call = True
    try:
        positional = [values.decode(value) for value in call["positional"]]
        keywords = {name: values.decode(value) for name, value in call["keywords"]}
        if plugin.context is not None:
            module = call["namespace"].partition("::")[0]
            context = signatures.Context(dict(_project, module=module, deployment=call["deployment"]))
            at = plugin.context_at
            if at is None or at > len(positional):
                keywords[plugin.context] = context
            else:
                positional.insert(at, context)
        answer = plugin.function(*positional, **keywords)
        return {"result": values.encode(answer)}
    except values.NoValue as refused:
        return {"refused": str(refused)}
    except BaseException as error:
        return {"raised": _describe(error)}
    finally:
        channel.in_call = False


def _describe(error, at=None):
    """What is told of an exception: what it is, what it says, and where in the modules it was raised."""
    sort = "other"
    for known, name in (
        (values.UnsetException, "unset"),
        (values.UnknownException, "unknown"),
        (values.OptionalValueException, "absent"),
        (values.PluginException, "declared"),
    ):
        if isinstance(error, known):
            sort = name
    name = type(error).__name__
    if isinstance(error, values.CompilerException):
        name = ""
    place = _place(error)
    if isinstance(error, SyntaxError) and error.filename:
        place = (error.filename, error.lineno or 0, None)
        message = error.msg
    else:
        message = _text(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {
        "sort": sort,
        "type": name,
        "message": _unicode(message, 10000),
        "file": place[0] if place else at,
        "line": place[1] if place else 0,
        "function": place[2] if place else None,
        "cause": None if cause is None or sort != "other" else _unicode(type(cause).__name__ + ": " + _text(cause), 1000),
    }


def _unicode(text, longest):
    return text[:longest].encode("utf-8", "replace").decode("utf-8")


def _text(error):
    try:
        return str(error)
    except BaseException:
        return "(it has no text)"


def _place(error):
    """The innermost place in a module: file, line and function."""
    found = None
    roots = tuple(directory + os.sep for directory in offered.directories.values())
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(roots):
            found = (frame.f_code.co_filename, line, frame.f_code.co_name)
    return found
