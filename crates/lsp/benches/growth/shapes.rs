//! Programs of one shape and any size: each repeats one thing that could cost more the more often it is there.

use std::fmt::Write;

use setpoint_diagnostics::MemoryLoader;

/// A way in which programs grow.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The smallest size that is measured.
    pub(crate) size: usize,
    /// What compiling says: nothing wrong, or errors.
    pub(crate) is_right: bool,
    pub(crate) program: fn(usize) -> MemoryLoader,
}

const fn right(name: &'static str, size: usize, program: fn(usize) -> MemoryLoader) -> Shape {
    Shape {
        name,
        size,
        is_right: true,
        program,
    }
}

const fn wrong(name: &'static str, size: usize, program: fn(usize) -> MemoryLoader) -> Shape {
    Shape {
        name,
        size,
        is_right: false,
        program,
    }
}

pub(crate) static SHAPES: &[Shape] = &[
    right("statements of all kinds", 2000, |n| one(&statements(n))),
    right("binds, each of the one before", 2000, |n| {
        chain("$x0 = 1\n", n, |i| format!("$x{i} = $x{} + 1\n", i - 1))
    }),
    right("binds in the opposite order", 2000, |n| {
        let lines: String = (1..=n)
            .rev()
            .map(|i| format!("$x{i} = $x{} + 1\n", i - 1))
            .collect();
        one(&format!("{lines}$x0 = 1\npanic($x{n} == 0)\n"))
    }),
    right("binds that are conditions of the one before", 1000, |n| {
        chain("$c = true\n$x0 = \"a\"\n", n, |i| {
            format!("$x{i} = if $c {{ $x{0} }} else {{ $x{0} }}\n", i - 1)
        })
    }),
    right("binds that fall back to the one before", 1000, |n| {
        chain("$x0 = \"a\"\n", n, |i| {
            format!("$x{i} = $x{0} <|> $x{0}\n", i - 1)
        })
    }),
    right(
        "binds without annotation, each a struct of the one before",
        200,
        |n| {
            chain("$x0 = struct{a => 1}\n", n, |i| {
                format!("$x{i} = struct{{a => $x{}}}\n", i - 1)
            })
        },
    ),
    right("binds, each a list of the one before twice", 200, |n| {
        chain("$x0 = [1,]\n", n, |i| format!("$x{i} = [$x{0}, $x{0},]\n", i - 1))
    }),
    right("functions, each calls the one before", 1000, |n| {
        let mut text = String::from("func f0($a) { $a + 1 }\n");
        for i in 1..=n {
            line(&mut text, &format!("func f{i}($a) {{ f{}($a) + 1 }}", i - 1));
        }
        line(&mut text, "$y = f0(1)");
        one(&text)
    }),
    right("functions, each calls the one before twice", 1000, |n| {
        let mut text = String::from("func f0($a) { $a }\n");
        for i in 1..=n {
            line(
                &mut text,
                &format!("func f{i}($a) {{ f{0}($a) + f{0}($a) }}", i - 1),
            );
        }
        line(&mut text, "$y = f3(1)");
        one(&text)
    }),
    right("functions, each of which doubles a type", 7, |n| {
        let mut text = String::from("func f0($a) { $a }\n");
        for i in 1..=n {
            line(
                &mut text,
                &format!(
                    "func f{i}($a) {{ struct{{l => f{0}($a), r => f{0}($a)}} }}",
                    i - 1
                ),
            );
        }
        line(&mut text, "$y = f2(1)\npanic($y == $y)");
        one(&text)
    }),
    right("nested conditions in functions that call each other", 50, |n| {
        let mut text = String::from("func f0($a) { $a }\n");
        for i in 1..=20 {
            let (open, close) = ("if $a == 1 { ".repeat(n), " } else { 2 }".repeat(n));
            line(
                &mut text,
                &format!("func f{i}($a) {{ {open}f{}($a){close} }}", i - 1),
            );
        }
        line(&mut text, "panic(f20(1) == 0)");
        one(&text)
    }),
    right("functions and binds in turns", 400, |n| {
        chain("$x0 = 1\n", n, |i| {
            format!("func f{i}() {{ $x{} + 1 }}\n$x{i} = f{i}()\n", i - 1)
        })
    }),
    right(
        "one function, called with a type of its own each time",
        400,
        |n| {
            let mut text = String::from("func both($a) { [$a, $a,] }\n");
            for i in 0..n {
                line(&mut text, &format!("$x{i} = both(struct{{a{i} => 1}})"));
            }
            one(&text)
        },
    ),
    right("calls of functions of the library", 2000, |n| {
        let mut text = String::from("import \"fmt\"\nimport \"strings\"\n");
        for i in 0..n {
            line(
                &mut text,
                &format!("print fmt.printf(\"%d %s\", {i}, strings.to_upper(\"x\")) {{}}"),
            );
        }
        one(&text)
    }),
    right("lambdas", 1000, |n| {
        let mut text = String::from("import \"iter\"\n$list = [1, 2,]\n");
        for i in 0..n {
            line(
                &mut text,
                &format!("$x{i} = iter.map($list, func($e) {{ $e + {i} }})"),
            );
        }
        one(&text)
    }),
    right("a map of many entries, each looked up", 1000, |n| {
        let entries: String = (0..n).map(|i| format!("\t\"k{i}\" => {i},\n")).collect();
        let lookups: String = (0..n).map(|i| format!("$x{i} = $m[\"k{i}\"]\n")).collect();
        one(&format!("$m map{{str: int}} = {{\n{entries}}}\n{lookups}"))
    }),
    right("a struct of many fields, each looked up", 400, |n| {
        let entries: String = (0..n).map(|i| format!("\tk{i} => {i},\n")).collect();
        let lookups: String = (0..n).map(|i| format!("$x{i} = $m->k{i}\n")).collect();
        one(&format!("$m = struct{{\n{entries}}}\n{lookups}"))
    }),
    right("a list in one line", 10_000, |n| {
        one(&format!("$l = [{}]\n", numbers(n)))
    }),
    right("a list of texts in one line", 10_000, |n| {
        one(&format!("$l = [{}]\n", texts(n)))
    }),
    right("a loop over a long list", 10_000, |n| {
        one(&format!(
            "for $i, $v in [{}] {{\n\tprint \"${{v}}\" {{}}\n}}\n",
            texts(n)
        ))
    }),
    right("loops", 1000, |n| {
        let mut text = String::from("$list = [\"a\", \"b\",]\n");
        for i in 0..n {
            line(
                &mut text,
                &format!("for $i, $a in $list {{\n\tprint \"{i} ${{a}}\" {{}}\n}}"),
            );
        }
        one(&text)
    }),
    right("one string with many values in it", 2000, |n| {
        let parts: String = (0..n).map(|i| format!("${{v}} {i} ")).collect();
        one(&format!("$v = \"a\"\n$s = \"{parts}\"\n"))
    }),
    right("strings with values in them", 2000, |n| {
        let mut text = String::from("$v = \"a\"\n");
        for i in 0..n {
            line(&mut text, &format!("$s{i} = \"x${{v}}y${{v}}\""));
        }
        one(&text)
    }),
    right("a sum of many terms", 120, |n| {
        let terms: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        one(&format!("$s = {}\n", terms.join(" + ")))
    }),
    right("classes, each included", 1000, |n| {
        let mut text = String::new();
        for i in 0..n {
            line(
                &mut text,
                &format!("class c{i}($p) {{\n\tprint \"{i} ${{p}}\" {{}}\n}}\ninclude c{i}(\"a\")"),
            );
        }
        one(&text)
    }),
    right("one class, included many times", 1000, |n| {
        let mut text = String::from("class c($p) {\n\t$q = \"${p}!\"\n\tprint \"${q}\" {}\n}\n");
        for i in 0..n {
            line(&mut text, &format!("include c(\"{i}\") as c{i}\n$x{i} = $c{i}.q"));
        }
        one(&text)
    }),
    right("classes, each includes the one before", 45, |n| {
        let mut text = String::from("class c0 {\n\t$v = 1\n}\n");
        for i in 1..=n {
            line(
                &mut text,
                &format!("class c{i} {{\n\tinclude c{0} as b\n\t$v = $b.v + 1\n}}", i - 1),
            );
        }
        one(&format!("{text}include c{n} as top\n$x = $top.v\n"))
    }),
    right("classes inside of one class", 1000, |n| {
        let inner: String = (0..n)
            .map(|i| format!("\tclass i{i} {{\n\t\tprint \"{i}\" {{}}\n\t}}\n\tinclude i{i}\n"))
            .collect();
        one(&format!("class outer {{\n{inner}}}\ninclude outer\n"))
    }),
    right("blocks, each with its own variable", 1000, |n| {
        let mut text = String::from("$c = true\n");
        for i in 0..n {
            line(
                &mut text,
                &format!("if $c {{\n\t$v = \"{i}\"\n\tprint \"p{i} ${{v}}\" {{}}\n}}"),
            );
        }
        one(&text)
    }),
    right("resources, each after the one before", 1000, |n| {
        chain("print \"p0\" {}\n", n, |i| {
            format!("print \"p{i}\" {{\n\tDepend => Print[\"p{}\"],\n}}\n", i - 1)
        })
    }),
    right("edges", 1000, |n| {
        let resources: String = (0..=n).map(|i| format!("test \"t{i}\" {{}}\n")).collect();
        let edges: String = (0..n)
            .map(|i| format!("Test[\"t{i}\"] -> Test[\"t{}\"]\n", i + 1))
            .collect();
        one(&format!("{resources}{edges}"))
    }),
    right("modules that import one library", 100, |n| {
        let library: String = (0..200)
            .map(|i| format!("func f{i}($a) {{ $a + {i} }}\n"))
            .collect();
        let mut files = MemoryLoader::new().with("library.mcl", library);
        let mut text = String::new();
        for i in 0..n {
            files = files.with(
                format!("m{i}.mcl"),
                format!("import \"library.mcl\"\n$v = library.f{}({i})\n", i % 200),
            );
            line(&mut text, &format!("import \"m{i}.mcl\"\n$x{i} = $m{i}.v"));
        }
        files.with("main.mcl", text)
    }),
    right("modules, each imports the one before", 100, |n| {
        let mut files = MemoryLoader::new().with("m0.mcl", "$v = 1\n");
        for i in 1..=n {
            files = files.with(
                format!("m{i}.mcl"),
                format!("import \"m{0}.mcl\"\n$v = $m{0}.v + 1\n", i - 1),
            );
        }
        files.with("main.mcl", format!("import \"m{n}.mcl\"\n$x = $m{n}.v\n"))
    }),
    right("comments", 10_000, |n| {
        let comments: String = (0..n)
            .map(|i| format!("# comment {i}\n$x{i} = 1 # behind\n"))
            .collect();
        one(&comments)
    }),
    right("comments that allow something", 1000, |n| {
        let lines: String = (0..n)
            .map(|i| format!("# setpoint: allow(unused-variable)\n$x{i} = 1\n"))
            .collect();
        one(&format!("{lines}test \"t\" {{}}\n"))
    }),
    wrong("unknown variables", 1000, |n| {
        chain("$known = 1\n", n, |i| format!("$x{i} = $knwon{i}\n"))
    }),
    wrong("values of the wrong type", 1000, |n| {
        chain("", n, |i| format!("$x{i} str = {i}\n"))
    }),
    wrong("operators on the wrong types", 1000, |n| {
        chain("", n, |i| {
            format!("test \"t{i}\" {{\n\tint64 => \"a\" + {i},\n}}\n")
        })
    }),
    wrong("statements that do not parse", 1000, |n| {
        chain("", n, |i| format!("$x{i} = = {i}\n"))
    }),
    wrong("variables that are there twice", 1000, |n| {
        chain("", n, |i| format!("$x{i} = 1\n$x{i} = 2\n"))
    }),
    wrong("unknown parameters", 1000, |n| {
        chain("", n, |i| format!("test \"t{i}\" {{\n\tnothing => 1,\n}}\n"))
    }),
    wrong("one mistake in a class that is included often", 500, |n| {
        let includes = "include c\n".repeat(n);
        one(&format!(
            "class c {{\n\ttest \"t\" {{\n\t\tint64 => \"a\",\n\t}}\n}}\n{includes}"
        ))
    }),
    wrong(
        "brackets that nothing closes",
        100,
        |n| one(&"$x = [\n".repeat(n)),
    ),
];

/// Statements as they are in programs of people, about so many.
pub(crate) fn statements(count: usize) -> String {
    let mut text = String::from("import \"fmt\"\n");
    for i in 0..count / 10 {
        let _ = write!(
            text,
            "# Part {i}.\n\
             $name_{i} = \"n{i}\"\n\
             $path_{i} = fmt.printf(\"/tmp/%s\", $name_{i})\n\
             $list_{i} = [\"a\", $name_{i}, \"${{path_{i}}}.d\",]\n\
             class c_{i}($p, $q) {{\n\tprint \"${{p}} {i}\" {{\n\t\tmsg => $q,\n\t}}\n}}\n\
             include c_{i}($name_{i}, \"q\")\n\
             file $path_{i} {{\n\tstate => \"exists\",\n\tcontent => $name_{i},\n\tmode => \"u=rw,go=r\",\n}}\n\
             if $name_{i} == \"n7\" {{\n\ttest \"t{i}\" {{}}\n}}\n\
             for $k, $e in $list_{i} {{\n\tprint \"${{e}} of {i}\" {{}}\n}}\n"
        );
    }
    text
}

fn one(text: &str) -> MemoryLoader {
    MemoryLoader::new().with("main.mcl", text)
}

/// Statements of which each needs the one before; the last one is used, where it is a variable.
fn chain(first: &str, count: usize, next: impl Fn(usize) -> String) -> MemoryLoader {
    let rest: String = (1..=count).map(next).collect();
    let used = match first.contains("$x0") {
        true => format!("panic($x{count} == $x{count})\n"),
        false => String::new(),
    };
    one(&format!("{first}{rest}{used}"))
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn numbers(count: usize) -> String {
    (0..count).map(|i| format!("{i}, ")).collect()
}

/// With letters of two bytes, which columns must tell apart.
fn texts(count: usize) -> String {
    (0..count).map(|i| format!("\"ä{i}\", ")).collect()
}
