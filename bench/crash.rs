//! The test behind `crash.sh`. It has no dependencies, so that `rustc` alone builds it.

#[allow(dead_code, reason = "other benchmarks use the rest")]
mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use support::{Arguments, Place, Random, Running, milliseconds};

/// Configurations with a command each, which is notified of changes.
const SERVICES: usize = 8;
/// Files that are undone when they leave the program.
const UNDONE: usize = 16;
/// Exported files.
const EXPORTED: usize = 6;
/// Who exports.
const HOSTNAME: &str = "crash";

fn main() {
    let arguments = Arguments::read();
    let rounds = arguments.number("--rounds", 1000);
    let seed = arguments.number("--seed", 1) as u64;
    let files = arguments.number("--files", 60);
    let place = Place::new(&arguments);
    let mut host = Host::new(&place, files);

    let mut random = Random(seed);
    let mut whole = host.run_whole(&mut random);
    println!("a whole run takes {:.0} ms; seed {seed}", milliseconds(whole));
    let (mut killed, mut completed) = (0, 0);
    for round in 0..rounds {
        host.next_program(&mut random);
        let program = host.write_program();
        let run = host.arguments(&program);
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        let mut running = Running(place.command(&run).spawn().expect("start the program"));
        let patience = whole.mul_f64(random.below(1100) as f64 / 1000.0);
        std::thread::sleep(patience);
        killed += usize::from(running.0.try_wait().expect("look at the program").is_none());
        drop(running);
        host.look_at_wholeness(round);
        // Often the next program comes to what was left behind, and sometimes the same one comes to its end.
        if random.below(3) == 0 {
            whole = whole.mul_f64(0.8) + place.run_well(&run).mul_f64(0.2);
            host.look_at_the_end(round);
            completed += 1;
        }
    }
    host.run_whole(&mut random);
    host.look_at_the_end(rounds);
    println!(
        "{rounds} rounds, {killed} killed before their end, {completed} then run to their end, which was right each time"
    );
    println!(
        "{} notifications were wished for, {} commands ran; what a newer wish overtook never ran, and what was killed between a command and its record runs again",
        host.changes,
        host.commands_run()
    );
    println!("what was exported, and what no longer, was right at each end");
    println!(
        "{} files were undone, each once; none was half-written",
        host.undone
    );
}

/// What is wanted, and what is known of what was.
struct Host<'a> {
    place: &'a Place,
    files: usize,
    /// Of the program.
    version: usize,
    /// Of each configuration, so that some stay as they are.
    configurations: [usize; SERVICES],
    changes: usize,
    /// Whether each undoable file is in the program.
    wanted: [bool; UNDONE],
    /// What the user has in each of them when no program wants it, as a version of the user's own.
    own: [usize; UNDONE],
    /// Whether a completed run has handed it back, so that the user may change it.
    handed_back: [bool; UNDONE],
    undone: usize,
    /// Versions that an undoable file may hold.
    possible: [BTreeSet<String>; UNDONE],
    exported: [bool; EXPORTED],
}

impl<'a> Host<'a> {
    fn new(place: &'a Place, files: usize) -> Host<'a> {
        for name in ["files", "services", "undone"] {
            fs::create_dir_all(place.path(name)).expect("make a directory");
        }
        let host = Host {
            place,
            files,
            version: 0,
            configurations: [0; SERVICES],
            changes: SERVICES,
            wanted: [false; UNDONE],
            own: [0; UNDONE],
            handed_back: [true; UNDONE],
            undone: 0,
            possible: Default::default(),
            exported: [true; EXPORTED],
        };
        for index in 0..UNDONE {
            fs::write(host.undone_path(index), own(index, 0)).expect("write a user's file");
        }
        host
    }

    fn undone_path(&self, index: usize) -> PathBuf {
        self.place.path(&format!("undone/{index}"))
    }

    fn arguments(&self, program: &Path) -> Vec<String> {
        let prefix = self.place.path("prefix");
        let alone = ["run", "--once", "--hostname", HOSTNAME, "--state-dir", text(&prefix), text(program)];
        alone
            .map(str::to_owned)
            .to_vec()
    }

    /// The next wish: everything changes somewhat, and users change what is theirs.
    fn next_program(&mut self, random: &mut Random) {
        self.version += 1;
        for configuration in &mut self.configurations {
            if random.below(3) == 0 {
                *configuration = self.version;
                self.changes += 1;
            }
        }
        for index in 0..UNDONE {
            let path = self.undone_path(index);
            if !self.wanted[index] && self.handed_back[index] && random.below(3) == 0 {
                self.own[index] = self.version;
                fs::write(&path, own(index, self.version)).expect("write a user's file");
            }
            let before = self.wanted[index];
            self.wanted[index] = random.below(2) == 0;
            if self.wanted[index] {
                self.handed_back[index] = false;
                self.possible[index].insert(managed(index, self.version));
            }
            self.undone += usize::from(before && !self.wanted[index]);
            self.possible[index].insert(own(index, self.own[index]));
        }
        for exported in &mut self.exported {
            *exported = random.below(2) == 0;
        }
    }

    fn write_program(&self) -> PathBuf {
        let version = self.version;
        let mut program = String::new();
        for index in 0..self.files {
            let path = self.place.path(&format!("files/{index}"));
            let content = long(index, version).replace('\n', "\\n");
            let _ = writeln!(
                program,
                "file \"{}\" {{\n\tcontent => \"{content}\",\n}}",
                path.display()
            );
        }
        for (index, configuration) in self.configurations.iter().enumerate() {
            let path = self.place.path(&format!("services/{index}"));
            let path = path.display();
            let _ = writeln!(
                program,
                "file \"{path}\" {{\n\tcontent => \"{configuration}\\n\",\n\tNotify => Exec[\"service {index}\"],\n}}\n\
                 exec \"service {index}\" {{\n\tcmd => \"cat {path} >> {path}.log\",\n\tshell => \"/bin/sh\",\n\trefresh_only => true,\n}}"
            );
        }
        for index in (0..UNDONE).filter(|index| self.wanted[*index]) {
            let path = self.undone_path(index);
            let content = managed(index, version).replace('\n', "\\n");
            let _ = writeln!(
                program,
                "file \"{}\" {{\n\tcontent => \"{content}\",\n\tMeta:reverse => true,\n}}",
                path.display()
            );
        }
        for index in 0..20 {
            let _ = writeln!(
                program,
                "print \"member {index}\" {{\n\tmsg => \"{version}\",\n}}"
            );
        }
        for index in (0..EXPORTED).filter(|index| self.exported[*index]) {
            let path = self.place.path(&format!("exported/{index}"));
            let content = exported(index, version);
            let _ = writeln!(
                program,
                "file \"{}\" {{\n\tcontent => \"{content}\",\n\tMeta:export => [\"*\",],\n\tMeta:hidden => true,\n}}",
                path.display()
            );
        }
        let path = self.place.path("program.mcl");
        fs::write(&path, program).expect("write the program");
        path
    }

    /// Runs the present program to its end.
    fn run_whole(&mut self, random: &mut Random) -> Duration {
        self.next_program(random);
        let program = self.write_program();
        let run = self.arguments(&program);
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        self.place.run_well(&run)
    }

    /// Whatever was killed: no file is half of anything.
    fn look_at_wholeness(&self, round: usize) {
        for index in 0..self.files {
            let path = self.place.path(&format!("files/{index}"));
            let Ok(found) = fs::read_to_string(&path) else {
                continue;
            };
            let version = found.split_whitespace().nth(3).and_then(|word| word.parse().ok());
            let whole = version
                .is_some_and(|version: usize| version <= self.version && found == long(index, version));
            assert!(
                whole,
                "round {round}: {} is half-written: {} bytes",
                path.display(),
                found.len()
            );
        }
        for (path, record) in self.records() {
            let whole = record.ends_with('}') && record.contains("exported content ");
            assert!(whole, "round {round}: {path} is half-written: {record}");
        }
        for index in 0..UNDONE {
            let found = fs::read_to_string(self.undone_path(index)).expect("a file that is always there");
            assert!(
                self.possible[index].contains(&found),
                "round {round}: file {index} holds what nobody wanted: {found:?}"
            );
        }
    }

    /// What other hosts could collect: the path and the text of each record.
    fn records(&self) -> Vec<(String, String)> {
        let directory = format!("prefix/world/_exports/_file/_%2a/_{HOSTNAME}");
        let entries = fs::read_dir(self.place.path(&directory)).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        let read = ours.map(|entry| {
            let text = fs::read_to_string(entry.path()).expect("nobody else takes records back");
            (entry.path().display().to_string(), text)
        });
        read.collect()
    }

    /// A run came to its end: everything is as wanted, and everybody knows.
    fn look_at_the_end(&mut self, round: usize) {
        for index in 0..self.files {
            let found = fs::read_to_string(self.place.path(&format!("files/{index}")));
            assert_eq!(
                found.ok(),
                Some(long(index, self.version)),
                "round {round}: file {index}"
            );
        }
        let records = self.records();
        let wanted: Vec<usize> = (0..EXPORTED).filter(|index| self.exported[*index]).collect();
        assert_eq!(records.len(), wanted.len(), "round {round}: {records:?}");
        for index in wanted {
            let content = exported(index, self.version);
            let found = records.iter().filter(|(_, record)| record.contains(&content)).count();
            assert_eq!(found, 1, "round {round}: the export of {index} is not what there is: {records:?}");
        }
        for (index, configuration) in self.configurations.iter().enumerate() {
            let log =
                fs::read_to_string(self.place.path(&format!("services/{index}.log"))).unwrap_or_default();
            let last = log.lines().next_back().map(str::to_owned);
            assert_eq!(
                last,
                Some(configuration.to_string()),
                "round {round}: service {index} never heard of it"
            );
        }
        for index in 0..UNDONE {
            let found = fs::read_to_string(self.undone_path(index)).expect("a file that is always there");
            let right = if self.wanted[index] {
                managed(index, self.version)
            } else {
                own(index, self.own[index])
            };
            assert_eq!(
                found, right,
                "round {round}: file {index}, in the program: {}",
                self.wanted[index]
            );
            self.handed_back[index] = !self.wanted[index];
            self.possible[index].clear();
            self.possible[index].insert(right);
        }
        let hidden = fs::read_dir(self.place.path("files"))
            .expect("a directory of ours")
            .flatten();
        let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        assert_eq!(hidden.count(), 0, "round {round}: temporary files stay behind");
    }

    fn commands_run(&self) -> usize {
        let logs =
            (0..SERVICES).map(|index| fs::read_to_string(self.place.path(&format!("services/{index}.log"))));
        logs.map(|log| log.unwrap_or_default().lines().count()).sum()
    }
}

/// Several sizes, up to many pages, so that a half-written file would be found.
fn long(index: usize, version: usize) -> String {
    format!("file {index}, version {version} \n").repeat(1 + (index * 37) % 400)
}

fn managed(index: usize, version: usize) -> String {
    format!("file {index} of program {version}\n")
}

/// Half of them stay what they are.
fn exported(index: usize, version: usize) -> String {
    let version = if index.is_multiple_of(2) { version } else { 0 };
    format!("exported content {index} of {version};")
}

fn own(index: usize, version: usize) -> String {
    format!("file {index} of the user, version {version}\n")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}
