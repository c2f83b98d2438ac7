//! What one process leaves for the next about files that it found right: it saves reading, and hides nothing.

use setpoint_testing::Hermetic;

use crate::end_to_end::{run, text};

#[test]
fn a_change_that_keeps_length_and_time_is_found_by_the_next_process() {
    let place = Hermetic::new();
    let file = place.path("file");
    let statement = |content: &str| {
        format!(
            "file \"{}\" {{\n\tcontent => \"{content}\",\n\tmode => \"0644\",\n}}\n",
            file.display()
        )
    };
    let program = place.write("p.mcl", statement("as wanted")).display().to_string();
    let changes: [&dyn Fn(); 3] = [
        &|| {},
        &|| {
            let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
            std::fs::write(&file, "tampered!").unwrap();
            let written = std::fs::File::options().write(true).open(&file).unwrap();
            written.set_modified(modified).unwrap();
        },
        &|| {
            let other = place.write("other", "tampered!");
            std::fs::rename(other, &file).unwrap();
        },
    ];
    for change in changes {
        for _ in 0..2 {
            let finished = run(&place, &["--once", &program]);
            assert_eq!(finished.code, 0, "{}", finished.stderr);
            assert_eq!(text(&file), "as wanted");
        }
        assert!(place.path("prefix/engine/verified").exists());
        change();
    }
    // Other contents are wanted now.
    let finished = run(&place, &["--once", &program]);
    assert_eq!((finished.code, text(&file).as_str()), (0, "as wanted"));
    let program = place.write("p.mcl", statement("as wished")).display().to_string();
    let finished = run(&place, &["--once", &program]);
    assert_eq!((finished.code, text(&file).as_str()), (0, "as wished"));
    // What is damaged is as if it were not there.
    std::fs::write(place.path("prefix/engine/verified"), "nonsense").unwrap();
    std::fs::write(&file, "as wrong!").unwrap();
    let finished = run(&place, &["--once", &program]);
    assert_eq!((finished.code, text(&file).as_str()), (0, "as wished"));
}
