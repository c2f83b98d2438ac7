//! Programs that are made to be deep or to grow are compiled or refused, within the stack and the memory that there is.

use std::fmt::Write as _;

use setpoint_diagnostics::MemoryLoader;
use setpoint_value::Registry;

use super::*;
use crate::analysis::{AnalysisOptions, analyse};
use crate::stack::depth::nested_steps;

/// The code of the first error; none for a program that compiles.
fn first_error(text: &str) -> Option<&'static str> {
    let library = Library::new(Registry::default(), []);
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let entry = Entry::Code {
        name: "main.mcl".to_owned(),
        text: text.to_owned(),
    };
    let options = CompileOptions::default();
    let loader = MemoryLoader::new();
    let compiled = compile(
        &entry,
        &options,
        &loader,
        &library,
        &mut sources,
        &mut diagnostics,
    );
    assert_eq!(compiled.program.is_none(), diagnostics.has_errors());
    diagnostics.iter().next().map(|d| d.code.code)
}

/// One line for each number, made by `line`.
fn lines(numbers: std::ops::Range<usize>, line: impl Fn(usize) -> String) -> String {
    numbers.fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

#[test]
fn long_chains_of_definitions_compile() {
    let binds = lines(0..10_000, |i| format!("$x{i} = $x{} + 1", i + 1));
    let program = format!("{binds}$x10000 = 1\npanic($x0 == 1)\n");
    let depth = nested_steps(|| assert_eq!(first_error(&program), None));
    assert!(depth < 100, "{depth} steps one in another");
}

#[test]
fn chains_of_tall_expressions_compile_or_are_refused() {
    let tall = " + 1".repeat(500);
    let binds = |count| {
        let binds = lines(0..count, |i| format!("$x{i} = $x{}{tall}", i + 1));
        format!("{binds}$x{count} = 1\npanic($x0 == 1)\n")
    };
    assert_eq!(first_error(&binds(50)), None);
    let functions = lines(0..390, |i| format!("func f{i}($a) {{ f{}($a){tall} }}", i + 1));
    let functions = format!("{functions}func f390($a) {{ $a }}\npanic(f0(1) == 1)\n");
    assert_eq!(first_error(&functions), None);
}

#[test]
fn long_chains_through_functions_branches_and_fallbacks_compile() {
    let through_functions = lines(1..5_000, |i| {
        format!("func f{i}() {{ $x{} + 1 }}\n$x{i} = f{i}()", i - 1)
    });
    let functions = format!("{through_functions}$x0 = 1\npanic($x4999 == 1)\n");
    let through_branches = lines(1..5_000, |i| {
        let before = i - 1;
        format!("$x{i} = if $c {{ $x{before} }} else {{ $x{before} }}")
    });
    let branches = format!("{through_branches}$c = 1 == 2\n$x0 = \"a\"\npanic($x4999 == \"a\")\n");
    let through_fallbacks = lines(1..5_000, |i| format!("$x{i} = $x{0} <|> $x{0}", i - 1));
    let fallbacks = format!("{through_fallbacks}$x0 = \"a\"\npanic($x4999 == \"a\")\n");
    let calls = lines(1..5_000, |i| format!("func f{i}($a) {{ f{}($a) + 1 }}", i - 1));
    let calls = format!("{calls}func f0($a) {{ $a }}\npanic(f4999(1) == 1)\n");
    for program in [functions, branches, fallbacks, calls] {
        let compile = || assert_eq!(first_error(&program), None);
        let (depth, beginning) = (nested_steps(compile), &program[..60]);
        assert!(depth < 100, "{depth} steps one in another: {beginning}");
    }
}

#[test]
fn functions_that_call_two_of_the_next_are_typed_once_and_refused_where_they_are_too_many() {
    let doubling = |levels: usize, first: &str, call: &str, test: &str| {
        let calls = lines(0..levels, |i| {
            format!("func f{}($x) {{ f{i}({call}) + f{i}({call}) }}", i + 1)
        });
        format!("{first}\n{calls}func last($x) {{ f{levels}($x) }}\npanic({test})\n")
    };
    for (levels, error) in [(17, None), (40, Some("E0220")), (390, Some("E0220"))] {
        let programs = [
            doubling(levels, "func f0($x) { $x + 1 }", "$x", "last(1) == last(2)"),
            doubling(levels, "func f0($x) { $x[0] }", "$x", "last([1]) == last([2])"),
            doubling(levels, "func f0($x) { $x->a }", "$x", "last(struct{a => 1}) == 1"),
            doubling(levels, "func f0($x) { \"${x}\" }", "$x", "last(\"a\") == \"b\""),
        ];
        for program in programs {
            assert_eq!(first_error(&program), error, "{program}");
        }
    }
}

#[test]
fn functions_that_call_what_is_typed_for_each_call_are_too() {
    let functions = lines(1..5, |i| {
        format!(
            "func f{i}($a) {{ if $l == [$a] {{ 1 }} else {{ f{}($a) }} }}",
            i - 1
        )
    });
    let program = format!("$l = []\nfunc f0($a) {{ $a }}\n{functions}panic(f4(1) == f4(2))\n");
    assert_eq!(first_error(&program), None);
}

#[test]
fn of_two_branches_one_is_there() {
    let functions = lines(0..40, |i| {
        format!(
            "func f{}($x) {{ if $x > {i} {{ f{i}($x) }} else {{ f{i}($x + 1) }} }}",
            i + 1
        )
    });
    let program = format!("func f0($x) {{ $x + 1 }}\n{functions}panic(f40(1) == 0)\n");
    assert_eq!(first_error(&program), None);
}

#[test]
fn classes_of_deep_blocks_are_refused() {
    let (open, close) = ("if true {\n".repeat(240), "}\n".repeat(240));
    let classes = lines(0..150, |i| {
        format!("class c{i} {{\n{open}include c{}\n{close}}}", i + 1)
    });
    let program = format!("{classes}class c150 {{}}\ninclude c0\n");
    assert_eq!(first_error(&program), Some("E0108"));
}

#[test]
fn names_of_many_parts_are_unknown() {
    let program = format!("class c {{}}\ninclude c as a\n$y = $a{}\n", ".a".repeat(20_000));
    assert_eq!(first_error(&program), Some("E0101"));
}

#[test]
fn what_doubles_at_each_step_is_refused() {
    let structs = lines(0..40, |i| {
        format!("$x{} = struct{{a => $x{i}, b => $x{i}}}", i + 1)
    });
    let structs = format!("$x0 = 1\n{structs}panic($x40 == $x40)\n");
    let types = lines(0..40, |i| {
        format!("func f{}($x) {{ f{i}(struct{{a => $x, b => $x}}) }}", i + 1)
    });
    let types = format!("func f0($x) {{ $x == $x }}\n{types}panic(f40(1))\n");
    let lists = lines(0..3000, |i| format!("$x{i} = [$x{}]", i + 1));
    let lists = format!("{lists}$x3000 = 1\npanic($x0 == $x0)\n");
    for program in [structs, types, lists] {
        assert_eq!(first_error(&program), Some("E0220"));
    }
}

#[test]
fn structs_inside_structs_are_as_large_as_what_is_written() {
    let chain = |levels: usize, innermost: &str| {
        let first = format!("$x0 = {innermost}\n");
        let others = lines(1..levels, |n| format!("$x{n} = struct{{a => $x{}}}", n - 1));
        // What is made of it is used, and nothing looks into it.
        let used = format!(
            "class c($v) {{\n\tpanic(false)\n}}\ninclude c($x{})\n",
            levels - 1
        );
        format!("{first}{others}{used}")
    };
    assert_eq!(first_error(&chain(900, "struct{a => 1}")), None);
    assert_eq!(first_error(&chain(1_000, "struct{a => 1}")), None);
    assert_eq!(first_error(&chain(1_001, "struct{a => 1}")), Some("E0220"));
    assert_eq!(first_error(&chain(3_000, "struct{a => 1}")), Some("E0220"));
    assert_eq!(first_error(&chain(900, "struct{a => []}")), Some("E0206"));
    assert_eq!(first_error(&chain(3_000, "struct{a => []}")), Some("E0220"));
}

#[test]
fn only_calls_inside_each_other_are_limited() {
    // It takes the list from outside, so that each call types the body anew.
    let function = "$l = []\nfunc f($a) { if $l == [$a] { 1 } else { 2 } }\n";
    let calls = lines(0..1_000, |i| format!("$x{i} = f({i})\npanic($x{i} == 3)"));
    assert_eq!(first_error(&format!("{function}{calls}")), None);
}

#[test]
fn what_functions_leave_open_does_not_double_without_end() {
    let chain = |first: &str, body: &dyn Fn(usize) -> String, used: &str| {
        let others = lines(1..40, |n| format!("func f{n}($a) {{ {} }}", body(n - 1)));
        format!("func f0($a) {{ {first} }}\n{others}$y = {used}\npanic($y == $y)\n")
    };
    // Types that double.
    let pair = |n: usize| format!("struct{{l => f{n}($a), r => f{n}($a)}}");
    let pairs = |used: &str| chain("struct{l => $a, r => $a}", &pair, used);
    assert_eq!(first_error(&pairs("f2(1)")), None);
    assert_eq!(first_error(&pairs("f39(1)")), Some("E0220"));
    // Variables that no type shows.
    let sum = |n: usize| format!("f{n}($a) + f{n}($a)");
    let open = chain("if [] == [] { 1 } else { 2 }", &sum, "f39(1)");
    assert_eq!(first_error(&open), Some("E0220"));
    // The same where nothing uses it: what is known of the program stays.
    let analysed = |text: String| {
        let loader = MemoryLoader::new().with("main.mcl", &text);
        let library = Library::new(Registry::default(), []);
        let entry = Entry::File("main.mcl".to_owned());
        let analysis = analyse(&entry, &AnalysisOptions::default(), &loader, &library);
        analysis.expect("nobody stops it").compiled.program.is_some()
    };
    assert!(analysed(pairs("f2(1)")));
    assert!(analysed(chain(
        "[$a]",
        &|n| format!("struct{{l => f{n}([$a]), r => f{n}({{\"a\" => $a}})}}"),
        "f2(1)"
    )));
}

/// Programs that are as deep as anything lets them be, and what is said of them.
fn deepest() -> Vec<(String, Option<&'static str>)> {
    let tall = " + 1".repeat(500);
    // Each takes the list from outside, so that each call types the body anew.
    let calls = |levels: usize| {
        let tall = &tall[..400];
        let functions = lines(1..levels, |i| {
            format!(
                "func f{i}($a) {{ if $l == [$a] {{ 1 }} else {{ f{}($a){tall} }} }}",
                i - 1
            )
        });
        let last = levels - 1;
        format!("$l = []\nfunc f0($a) {{ $a }}\n{functions}panic(f{last}(1) == f{last}(2))\n")
    };
    let classes = |levels: usize| {
        let classes = lines(1..levels, |i| {
            format!(
                "class c{i}($p) {{\n\tinclude c{}($p{tall}) as b\n\t$v = $b.v + 1\n}}",
                i - 1
            )
        });
        let last = levels - 1;
        format!("class c0($p) {{\n\t$v = $p\n}}\n{classes}include c{last}(1) as top\npanic($top.v == 1)\n")
    };
    // Types that become deep from the inside, from the outside, and at once.
    let inward = lines(1..3_000, |i| format!("$x{i} = [$x{}]", i - 1));
    let inward = format!("$x0 = []\n{inward}panic($x2999 == $x2999)\n");
    let equations = |levels: usize| {
        let open = lines(0..levels, |i| format!("$x{i} = []"));
        let equal = (1..levels)
            .rev()
            .map(|i| format!("panic($x{i} == [$x{}])\n", i - 1));
        format!("{open}{}", equal.collect::<String>())
    };
    let outward = equations(3_000);
    let at_once = format!("{}panic($x0 == [1])\n", equations(10_000));
    vec![
        (calls(120), None),
        (calls(450), Some("E0220")),
        (classes(190), None),
        (classes(250), Some("E0108")),
        (inward, Some("E0220")),
        (outward, Some("E0220")),
        (at_once, Some("E0220")),
    ]
}

#[test]
fn the_deepest_programs_are_compiled_or_refused_on_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let work = || {
        for (program, error) in deepest() {
            let beginning: String = program.chars().take(200).collect();
            assert_eq!(first_error(&program), error, "{beginning}");
            let loader = MemoryLoader::new().with("main.mcl", &program);
            let library = Library::new(Registry::default(), []);
            let entry = Entry::File("main.mcl".to_owned());
            let analysis = analyse(&entry, &AnalysisOptions::default(), &loader, &library);
            assert!(analysis.is_some(), "{beginning}");
        }
    };
    let ended = thread.spawn(work).expect("a thread").join();
    assert!(ended.is_ok(), "no overflow, and what is expected");
}

#[test]
fn modules_that_import_each_other_in_a_long_row_compile_on_a_small_stack() {
    let mut files = MemoryLoader::new().with("m0.mcl", "$v = 1\n");
    for i in 1..1_000 {
        let text = format!("import \"m{0}.mcl\"\n$v = $m{0}.v + 1\n", i - 1);
        files = files.with(format!("m{i}.mcl"), text);
    }
    let files = files.with("main.mcl", "import \"m999.mcl\"\npanic($m999.v == 1)\n");
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let work = move || {
        let library = Library::new(Registry::default(), []);
        let entry = Entry::File("main.mcl".to_owned());
        let analysis = analyse(&entry, &AnalysisOptions::default(), &files, &library);
        analysis.is_some_and(|analysis| analysis.compiled.program.is_some())
    };
    assert!(thread.spawn(work).expect("a thread").join().expect("no overflow"));
}

/// A library that four modules import, and the number of its copies: by how many of its functions there are.
fn copies_of(library: &str, uses: [&str; 4]) -> usize {
    let mut files = MemoryLoader::new().with("library.mcl", library);
    let mut main = String::new();
    for (i, used) in uses.iter().enumerate() {
        files = files.with(
            format!("m{i}.mcl"),
            format!("import \"library.mcl\"\n$v = {used}\n"),
        );
        main.push_str(&format!("import \"m{i}.mcl\"\npanic($m{i}.v == $m{i}.v)\n"));
    }
    let files = files.with("main.mcl", main);
    let entry = Entry::File("main.mcl".to_owned());
    let registry = Registry::default();
    let analysis = analyse(
        &entry,
        &AnalysisOptions::default(),
        &files,
        &Library::new(registry, []),
    );
    let analysis = analysis.expect("nobody stops it");
    assert!(analysis.compiled.program.is_some(), "{:?}", analysis.diagnostics);
    assert_eq!(analysis.imports().len(), 8);
    analysis.hir.functions.len()
}

#[test]
fn imports_share_a_file_unless_a_use_decides_a_type_of_it() {
    let plain = "$a = [1, 2]\n$b []str = []\nfunc f($x) { $x }\nclass c($p) {\n\tpanic($p == 1)\n}\n";
    assert_eq!(
        copies_of(plain, ["library.f(1)", "library.f(\"a\")", "$library.a", "1"]),
        1
    );
    let open = "$a = []\nfunc f($x) { $a == [$x] }\n";
    assert_eq!(
        copies_of(open, ["library.f(1)", "library.f(\"a\")", "library.f(true)", "2"]),
        4
    );
}
