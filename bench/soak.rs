//! The soak behind `soak.sh`. It has no dependencies, so that `rustc` alone builds it.

#[allow(dead_code, reason = "other benchmarks use the rest")]
mod support;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::{Arguments, Place, Random};

/// How long the machine may take to become right when nobody disturbs any more: longer than the longest wait between two tries.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long a polite request to end may take while nothing is in the way.
const END: Duration = Duration::from_secs(60);
/// More memory than this is a leak.
const MOST_MEMORY: u64 = 600 << 20;

fn main() {
    let arguments = Arguments::read();
    let minutes = arguments.number("--minutes", 2);
    let seed = arguments.number("--seed", 1) as u64;
    let place = Place::new(&arguments);
    let mut soak = Soak::new(&place, seed, arguments.number("--count", 200));
    println!(
        "{minutes} minutes with seed {seed} in {}",
        place.directory.display()
    );
    soak.start();
    let end = Instant::now() + Duration::from_secs(60 * minutes as u64);
    while Instant::now() < end {
        soak.disturb();
        let pause = soak.random.below(150) as u64;
        sleep(Duration::from_millis(pause));
        soak.expect_running();
    }
    soak.end();
    for (what, count) in &soak.counts {
        println!("{count:6} {what}");
    }
    println!("right after {:.1} s of quiet", soak.became_right.as_secs_f64());
}

struct Soak<'a> {
    place: &'a Place,
    random: Random,
    count: usize,
    /// Which of the two programs is asked for.
    version: usize,
    input: usize,
    disks: Disks,
    running: Option<Followed>,
    counts: BTreeMap<&'static str, usize>,
    became_right: Duration,
    most_memory: u64,
}

impl<'a> Soak<'a> {
    fn new(place: &'a Place, seed: u64, count: usize) -> Soak<'a> {
        for directory in ["files", "small", "disk"] {
            fs::create_dir_all(place.path(directory)).expect("make a directory");
        }
        let disks = Disks::mount(place);
        let soak = Soak {
            place,
            random: Random(seed),
            count,
            version: 0,
            input: 0,
            disks,
            running: None,
            counts: BTreeMap::new(),
            became_right: Duration::ZERO,
            most_memory: 0,
        };
        soak.write_input();
        soak.write_program();
        soak
    }

    fn did(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// What the input says, which many contents follow.
    fn input_text(&self) -> String {
        format!("input {}\n", self.input)
    }

    fn write_input(&self) {
        let (new, path) = (self.place.path("input.new"), self.place.path("input"));
        fs::write(&new, self.input_text()).expect("write the input");
        fs::rename(new, path).expect("replace the input");
    }

    /// Every file that the program describes, with its content.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let (version, input) = (self.version, self.input_text());
        let mut files = Vec::new();
        for index in 0..self.count {
            let path = self.place.path(&format!("files/d{}/f{index}", index % 5));
            files.push((path, format!("version {version} file {index}\n")));
        }
        for index in 0..10 {
            files.push((
                self.place.path(&format!("disk/f{index}")),
                format!("disk {index} {input}"),
            ));
            let long = format!("small {index} version {version}\n").repeat(100);
            files.push((self.place.path(&format!("small/f{index}")), long));
        }
        files.push((self.place.path("config"), format!("config {version} {input}")));
        files
    }

    fn write_program(&self) {
        let root = self.place.directory.display();
        let mut text = format!(
            "import \"os\"\n$input = os.readfile(\"{root}/input\") <|> \"\"\n\
             exec \"reload\" {{\n\tcmd => \"cp {root}/config {root}/seen\",\n\trefresh_only => true,\n}}\n\
             exec \"make\" {{\n\tcmd => \"echo made > {root}/made\",\n\tshell => \"/bin/sh\",\n\tcreates => \"{root}/made\",\n}}\n\
             exec \"send\" {{\n\tcmd => \"cat {root}/input\",\n\twatchfiles => [\"{root}/input\",],\n}}\n\
             exec \"sleep\" {{\n\tcmd => \"sleep 0.3; true\",\n\tshell => \"/bin/sh\",\n\twatchfiles => [\"{root}/input\",],\n}}\n\
             file \"{root}/sent\" {{\n\tstate => \"exists\",\n}}\nExec[\"send\"].stdout -> File[\"{root}/sent\"].content\n"
        );
        for directory in 0..5 {
            let _ = writeln!(
                text,
                "file \"{root}/files/d{directory}/\" {{\n\tstate => \"exists\",\n}}"
            );
        }
        for (path, content) in self.files() {
            let content = content
                .replace(&self.input_text(), "${input}")
                .replace('\n', "\\n");
            let notify = if path.ends_with("config") {
                "\tNotify => Exec[\"reload\"],\n"
            } else {
                ""
            };
            let path = path.display();
            let _ = writeln!(
                text,
                "file \"{path}\" {{\n\tstate => \"exists\",\n\tmode => \"0644\",\n\tcontent => \"{content}\",\n{notify}}}"
            );
        }
        let new = self.place.path("program.new");
        fs::write(&new, text).expect("write the program");
        fs::rename(new, self.place.path("program.mcl")).expect("replace the program");
    }

    fn start(&mut self) {
        let (prefix, program) = (self.place.path("prefix"), self.place.path("program.mcl"));
        let mut command = self.place.command(&["run", "--json", "--state-dir"]);
        command.arg(prefix).arg(program);
        self.running = Some(Followed::start(command));
    }

    /// Does something to the machine or to the program.
    fn disturb(&mut self) {
        match self.random.below(40) {
            0..20 => self.drift(),
            20..24 => {
                self.input += 1;
                self.write_input();
                self.did("another input");
            }
            24..26 => self.move_away(),
            26 => {
                let _ = fs::remove_file(self.place.path("made"));
                self.did("removed what a command creates");
            }
            27..29 => {
                self.version = 1 - self.version;
                self.write_program();
                self.signal("HUP");
                self.did("another program");
            }
            29 => {
                self.version = 1 - self.version;
                // The first program of a process must be right.
                self.block_output(false);
                fs::write(self.place.path("program.mcl"), "file \"").expect("write the program");
                self.signal("HUP");
                sleep(Duration::from_millis(self.random.below(300) as u64));
                self.write_program();
                self.signal("HUP");
                self.did("a program that does not compile, then another one");
            }
            30 => {
                self.kill("KILL");
                self.start();
                self.did("kill -9 and a new start");
            }
            31 => {
                self.stop_politely();
                self.start();
                self.did("an end and a new start");
            }
            32 => {
                self.signal("STOP");
                self.drift();
                sleep(Duration::from_millis(self.random.below(500) as u64));
                self.signal("CONT");
                self.did("stopped the process for a while");
            }
            33..35 if self.disks.frozen_is_there => {
                self.disks.freeze(true);
                for _ in 0..self.random.below(10) {
                    self.drift();
                    sleep(Duration::from_millis(self.random.below(100) as u64));
                }
                self.disks.freeze(false);
                self.did("a disk that hangs for a while");
            }
            35..37 if self.disks.small_is_there => {
                let ballast = self.place.path("small/ballast");
                let _ = fs::write(&ballast, vec![0; 1 << 20]);
                for _ in 0..self.random.below(5) {
                    self.drift();
                    sleep(Duration::from_millis(self.random.below(100) as u64));
                }
                let _ = fs::remove_file(ballast);
                self.did("a disk that is full for a while");
            }
            _ => {
                self.block_output(true);
                for _ in 0..self.random.below(30) {
                    self.drift();
                    sleep(Duration::from_millis(20));
                }
                if self.random.below(4) == 0 {
                    self.stop_politely();
                    self.start();
                    self.did("an end while nobody takes the output");
                } else {
                    self.block_output(false);
                }
                self.did("output that nobody takes for a while");
            }
        }
    }

    /// Makes one file wrong.
    fn drift(&mut self) {
        let files = self.files();
        let (path, _) = &files[self.random.below(files.len())];
        // What is on a frozen disk would hold us up too.
        if self.disks.is_frozen && path.starts_with(self.place.path("disk")) {
            return;
        }
        let what = match self.random.below(6) {
            0 => {
                let _ = fs::remove_file(path);
                "removed a file"
            }
            1 => {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
                "changed a mode"
            }
            2 => {
                let other = path.with_extension("other");
                let _ = fs::write(&other, "replaced").and_then(|()| fs::rename(&other, path));
                "replaced a file"
            }
            3 => {
                let _ = fs::write(path, "");
                "emptied a file"
            }
            _ => {
                let _ = fs::write(path, "wrong");
                "wrote to a file"
            }
        };
        self.did(what);
    }

    /// Moves a directory of files away and back, or puts another one in its place.
    fn move_away(&mut self) {
        let directory = self.place.path(&format!("files/d{}", self.random.below(5)));
        let away = self.place.path("away");
        if fs::rename(&directory, &away).is_err() {
            return;
        }
        sleep(Duration::from_millis(self.random.below(300) as u64));
        if self.random.below(2) == 0 && fs::rename(&away, &directory).is_ok() {
            self.did("moved a directory away and back");
            return;
        }
        // Ours was made again meanwhile, or this one is to be empty.
        let _ = fs::remove_dir_all(&away);
        self.did("took a directory away");
    }

    fn signal(&self, name: &str) {
        let running = self.running.as_ref().expect("it was started");
        match name {
            "TERM" => running.wait_for("a graph", &running.accepted),
            "HUP" => running.wait_for("anything", &running.spoken),
            _ => {}
        }
        let _ = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(running.id().to_string())
            .status();
    }

    fn kill(&mut self, name: &str) {
        self.signal(name);
        let mut running = self.running.take().expect("it was started");
        let _ = running.child.wait();
    }

    fn stop_politely(&mut self) {
        self.note_memory();
        self.signal("TERM");
        let mut running = self.running.take().expect("it was started");
        let deadline = Instant::now() + END;
        let status = loop {
            if let Some(status) = running.child.try_wait().expect("look at the program") {
                break status;
            }
            if Instant::now() > deadline {
                let threads = running.threads();
                self.disks.freeze(false);
                panic!(
                    "it does not end; its threads wait for:\n{threads}\n{}",
                    running.last_words()
                );
            }
            sleep(Duration::from_millis(5));
        };
        // Output that could not be written makes the end an error, and nothing else does.
        let good = status.code() == Some(0) || (running.is_blocked() && status.code() == Some(1));
        running.block(false);
        assert!(good, "it ended with {status}:\n{}", running.last_words());
    }

    fn block_output(&self, blocked: bool) {
        let running = self.running.as_ref().expect("it was started");
        running.wait_for("a graph", &running.accepted);
        running.block(blocked);
    }

    fn expect_running(&mut self) {
        let running = self.running.as_mut().expect("it was started");
        if let Some(status) = running.child.try_wait().expect("look at the program") {
            panic!("it ended by itself with {status}:\n{}", running.last_words());
        }
    }

    fn note_memory(&mut self) {
        let id = self.running.as_ref().expect("it was started").id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        self.most_memory = self.most_memory.max(peak.unwrap_or(0) * 1024);
    }

    /// What is wrong with the machine.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut expect = |path: PathBuf, content: &str| {
            let is = fs::read_to_string(&path).unwrap_or_else(|error| format!("({error})"));
            if is != content {
                let start: String = is.chars().take(60).collect();
                wrong.push(format!("{} is {start:?}", path.display()));
            }
        };
        for (path, content) in self.files() {
            expect(path, &content);
        }
        expect(self.place.path("made"), "made\n");
        expect(self.place.path("sent"), &self.input_text());
        expect(
            self.place.path("seen"),
            &format!("config {} {}", self.version, self.input_text()),
        );
        for (path, _) in self.files() {
            let mode = fs::metadata(&path).map_or(0, |found| found.permissions().mode() & 0o7777);
            if mode != 0o644 {
                wrong.push(format!("{} has mode {mode:o}", path.display()));
            }
        }
        wrong
    }

    /// Stops disturbing, and waits until the machine is right.
    fn end(&mut self) {
        self.block_output(false);
        let quiet = Instant::now();
        loop {
            let wrong = self.wrong();
            if wrong.is_empty() {
                break;
            }
            self.expect_running();
            if quiet.elapsed() > PATIENCE {
                let running = self.running.as_ref().expect("it was started");
                let (threads, words) = (running.threads(), running.last_words());
                panic!(
                    "{} things are wrong:\n{}\nthreads:\n{threads}\nlast:\n{words}",
                    wrong.len(),
                    wrong.join("\n")
                );
            }
            sleep(Duration::from_millis(50));
        }
        self.became_right = quiet.elapsed();
        let id = self.running.as_ref().expect("it was started").id();
        // What a command is about to do may take a moment; then nothing is under way.
        sleep(Duration::from_secs(3));
        let before = processor_time(id);
        sleep(Duration::from_secs(5));
        let busy = processor_time(id) - before;
        assert!(
            busy < 50,
            "it takes {busy} hundredths of a second in 5 s although nothing happens"
        );
        self.stop_politely();
        let left: Vec<String> = temporaries(&self.place.directory);
        assert!(left.is_empty(), "temporary files stay behind: {left:?}");
        assert!(
            self.most_memory < MOST_MEMORY,
            "it took {} bytes of memory",
            self.most_memory
        );
        println!("{} MB of memory at most", self.most_memory >> 20);
        assert!(
            self.wrong().is_empty(),
            "what was right is wrong after the end: {:?}",
            self.wrong()
        );
    }
}

/// Hundredths of a second of a processor.
fn processor_time(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let number = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0)
    };
    number(11) + number(12)
}

fn temporaries(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(".setpoint-") {
            found.push(path.display().to_string());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(temporaries(&path));
        }
    }
    found
}

/// A program that runs, and the end of what it says.
struct Followed {
    child: Child,
    blocked: Arc<AtomicBool>,
    spoken: Arc<AtomicBool>,
    accepted: Arc<AtomicBool>,
    lines: Arc<Mutex<VecDeque<String>>>,
    errors: Arc<Mutex<Vec<u8>>>,
}

impl Followed {
    fn start(mut command: Command) -> Followed {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start the program");
        let output = child.stdout.take().expect("it was piped");
        let mut error_output = child.stderr.take().expect("it was piped");
        let followed = Followed {
            child,
            blocked: Arc::default(),
            spoken: Arc::default(),
            accepted: Arc::default(),
            lines: Arc::default(),
            errors: Arc::default(),
        };
        let (blocked, lines) = (followed.blocked.clone(), followed.lines.clone());
        let (spoken, accepted) = (followed.spoken.clone(), followed.accepted.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                spoken.store(true, Ordering::SeqCst);
                if line.contains("\"graph accepted\"") {
                    accepted.store(true, Ordering::SeqCst);
                }
                wait_while(&blocked);
                let mut lines = lines.lock().expect("nobody panics with it");
                if lines.len() == 200 {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        });
        let (blocked, errors) = (followed.blocked.clone(), followed.errors.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = error_output.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                wait_while(&blocked);
                let mut errors = errors.lock().expect("nobody panics with it");
                errors.extend_from_slice(&buffer[..count]);
                let surplus = errors.len().saturating_sub(20_000);
                errors.drain(..surplus);
            }
        });
        followed
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn block(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::SeqCst);
    }

    /// Waits until it has said something. Until it has a graph, nothing is made, and a request to end may end it at once.
    fn wait_for(&self, what: &str, said: &AtomicBool) {
        let deadline = Instant::now() + END;
        while !said.load(Ordering::SeqCst) {
            assert!(
                Instant::now() < deadline,
                "it does not say {what}:\n{}",
                self.last_words()
            );
            sleep(Duration::from_millis(5));
        }
    }

    fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::SeqCst)
    }

    fn last_words(&self) -> String {
        self.block(false);
        sleep(Duration::from_millis(300));
        let lines = self.lines.lock().expect("nobody panics with it");
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let errors = self.errors.lock().expect("nobody panics with it");
        format!("{}\n{}", lines.join("\n"), String::from_utf8_lossy(&errors))
    }

    /// Where each thread waits, for messages.
    fn threads(&self) -> String {
        let directory = format!("/proc/{}/task", self.id());
        let mut text = String::new();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let _ = writeln!(text, "{} {}", read("comm").trim(), read("wchan"));
        }
        text
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.block(false);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_while(blocked: &AtomicBool) {
    while blocked.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(5));
    }
}

/// File systems that fill up and hang.
struct Disks {
    small: PathBuf,
    disk: PathBuf,
    small_is_there: bool,
    frozen_is_there: bool,
    is_frozen: bool,
}

impl Disks {
    fn mount(place: &Place) -> Disks {
        let (small, disk, image) = (place.path("small"), place.path("disk"), place.path("disk.image"));
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let text = |path: &Path| path.display().to_string();
        let small_is_there = run(
            "mount",
            &["-t", "tmpfs", "-o", "size=200k", "none", &text(&small)],
        );
        let made = fs::File::create(&image)
            .and_then(|file| file.set_len(16 << 20))
            .is_ok();
        let frozen_is_there = made
            && run("mkfs.ext4", &["-q", &text(&image)])
            && run("mount", &["-o", "loop", &text(&image), &text(&disk)]);
        if !small_is_there {
            println!("left out: a full disk, because nothing can be mounted here");
        }
        if !frozen_is_there {
            println!("left out: a disk that hangs, because there is no loop device");
        }
        Disks {
            small,
            disk,
            small_is_there,
            frozen_is_there,
            is_frozen: false,
        }
    }

    fn freeze(&mut self, frozen: bool) {
        if self.is_frozen != frozen {
            let option = if frozen { "--freeze" } else { "--unfreeze" };
            let status = Command::new("fsfreeze").arg(option).arg(&self.disk).status();
            self.is_frozen = frozen && status.is_ok_and(|status| status.success());
        }
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.freeze(false);
        for (there, path) in [
            (self.small_is_there, &self.small),
            (self.frozen_is_there, &self.disk),
        ] {
            if there {
                let _ = Command::new("umount").arg("--lazy").arg(path).status();
            }
        }
    }
}
