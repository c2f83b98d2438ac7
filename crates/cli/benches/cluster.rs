//! What a cluster costs, on a real etcd of this machine, behind `bench/cluster.sh`:
//!
//! - `latency`: how long it takes from a record that a host exports to the resource that another host has made of it, beside how long a bare
//!   client waits for a change that it has made itself, one after the other in one run;
//! - `deploy`: how long many hosts, a process each, take until all have a new deploy and are right;
//! - `idle`: what those hosts ask the store for when nothing happens.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "measures time and processes, and says so"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use setpoint_testing::Hermetic;
use setpoint_testing::etcd::EtcdCluster;
use setpoint_world::{
    Change, EtcdOptions, EtcdStore, Key, Operation, Revision, Selection, Store, Transaction, Watch, Watched,
};
use tokio::runtime::Runtime;

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let number = |name: &str, default: usize| {
        let at = words.iter().position(|word| word == name);
        at.and_then(|at| words.get(at + 1)?.parse().ok())
            .unwrap_or(default)
    };
    let is_wanted = |what: &str| {
        let named = ["latency", "deploy", "idle"];
        !words.iter().any(|word| named.contains(&word.as_str())) || words.iter().any(|word| word == what)
    };
    if is_wanted("latency") {
        latency(number("--samples", 500));
    }
    if is_wanted("deploy") || is_wanted("idle") {
        hosts(
            number("--hosts", 100),
            number("--files", 20),
            number("--seconds", 60),
        );
    }
}

/// An etcd, and a client of it that does nothing else.
struct Bench {
    etcd: EtcdCluster,
    place: Hermetic,
    store: EtcdStore,
    runtime: Runtime,
}

impl Bench {
    fn start() -> Bench {
        let etcd = EtcdCluster::start(1);
        let options = EtcdOptions {
            endpoints: etcd.endpoints(),
            namespace: "/setpoint".to_owned(),
            login: None,
            tls: None,
            ssh: None,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("there are threads");
        let store = runtime.block_on(async { EtcdStore::new(options) });
        Bench {
            etcd,
            place: Hermetic::new(),
            store: store.expect("the endpoints are right"),
            runtime,
        }
    }

    /// The program under test, with the store and a host's name.
    fn setpoint(&self, command: &str, host: Option<&str>) -> Command {
        let program = std::env::var_os("SETPOINT").expect("SETPOINT says which program is measured");
        let mut all = self.place.command(program);
        all.arg(command);
        all.args(["--etcd-endpoints", &self.etcd.endpoints().join(",")]);
        if let Some(host) = host {
            all.args(["--no-raise-limits", "--json", "--hostname", host, "--state-dir"]);
            all.arg(self.place.path(&format!("prefix-{host}")));
        }
        all.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        all
    }

    /// A host that runs on.
    fn host(&self, host: &str, further: &[&str]) -> Host {
        let mut command = self.setpoint("run", Some(host));
        let child = command.args(further).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the program can be started");
        let lines = BufReader::new(child.stdout.take().expect("it was piped"));
        Host { child, lines }
    }

    /// Changes a key of the bare client's own, and waits until it hears of it.
    fn bare(&self, watch: &mut Watch, number: usize) -> Duration {
        let key = Key::new("/bench/bare").expect("it is not empty");
        let value = number.to_string();
        self.runtime.block_on(async {
            let begin = Instant::now();
            let put = Operation::put(key, value.as_bytes());
            let done = self.store.transact(Transaction::of([put])).await;
            done.expect("the store takes it");
            wait_for(watch, &value).await;
            begin.elapsed()
        })
    }

    /// Numbers that etcd counts, by their names with labels.
    fn counters(&self) -> BTreeMap<String, f64> {
        let endpoint = self.etcd.endpoints().remove(0);
        let address = endpoint.trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(&address).expect("the etcd is there");
        let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it can be asked");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let numbers = lines.filter_map(|line| {
            let (name, number) = line.rsplit_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        });
        numbers.collect()
    }
}

/// Waits for a change to a value.
async fn wait_for(watch: &mut Watch, value: &str) {
    loop {
        let Watched::Changed(batch) = watch.next().await else {
            continue;
        };
        let is_it = batch.changes.iter().any(|change| match change {
            Change::Put(entry) => entry.text().is_some_and(|text| text.contains(value)),
            Change::Deleted(_) => false,
        });
        if is_it {
            return;
        }
    }
}

/// A host that runs; killed in the end.
struct Host {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Host {
    /// Waits for an event that has these words in it.
    fn says(&mut self, words: &[&str]) {
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.lines.read_line(&mut line).expect("it is text");
            assert_ne!(count, 0, "the host has ended before it said {words:?}");
            if words.iter().all(|word| line.contains(word)) {
                return;
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From the store to the other host, beside a bare client.
fn latency(samples: usize) {
    let bench = Bench::start();
    let value = bench.place.write("value", "begin");
    let exports = format!(
        "import \"os\"\nprint \"news\" {{\n\tmsg => os.readfile(\"{}\"),\n\tMeta:hidden => true,\n\tMeta:export => [\"*\",],\n}}\n",
        value.display()
    );
    let exports = bench.place.write("exports.mcl", exports).display().to_string();
    let collects = "import \"world/collect\"\ncollect print collect.res(\"print\") {}\n";
    let collects = bench.place.write("collects.mcl", collects).display().to_string();
    let mut collecting = bench.host("collecting", &["--no-deploy", &collects]);
    let mut exporting = bench.host("exporting", &["--no-deploy", &exports]);
    collecting.says(&["begin"]);
    let entered = bench.runtime.enter();
    let mut bare = bench.store.watch(Selection::prefix("/bench/"), Revision(0));
    let mut exported = bench.store.watch(Selection::prefix("/exported/"), Revision(0));
    drop(entered);
    bench.bare(&mut bare, 0);
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    for number in 1..=samples {
        let own = bench.bare(&mut bare, number);
        // What the exporting host does before it writes (seeing the file, its own values) is not what is measured: the time begins when the bare
        // client sees the record, and what such a client waits for its own change is added.
        let text = format!("news-{number:06}");
        let new = bench.place.write("value-new", &text);
        std::fs::rename(new, &value).expect("the place is writable");
        bench.runtime.block_on(wait_for(&mut exported, &text));
        let seen = Instant::now();
        collecting.says(&[&text]);
        bares.push(own);
        ours.push(seen.elapsed() + own);
    }
    drop(exporting.child.kill());
    println!("latency, {samples} samples, one after the other:");
    print_times("a bare client's own change", &mut bares);
    print_times("exported, to the other host's resource", &mut ours);
    for share in [50, 99] {
        let ratio = at(&ours, share).as_secs_f64() / at(&bares, share).as_secs_f64();
        println!("  ratio p{share}: {ratio:.2}");
    }
}

/// The time that so many in a hundred do not exceed, of sorted ones.
fn at(times: &[Duration], share: usize) -> Duration {
    times[(times.len() * share / 100).min(times.len() - 1)]
}

fn print_times(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let all =
        [50, 90, 99, 100].map(|share| format!("p{share} {:.2} ms", at(times, share).as_secs_f64() * 1000.0));
    println!("  {what}: {}", all.join(", "));
}

/// Many hosts that take deploys, and then have nothing to do.
fn hosts(count: usize, files: usize, seconds: usize) {
    let bench = Bench::start();
    let begin = Instant::now();
    let hosts: Vec<Child> = (0..count).map(|number| bench.member(number)).collect();
    bench.wait_until(count, "/members/");
    println!(
        "{count} hosts: there after {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    for round in 1..=3 {
        let program = format!(
            "$place = \"{}/${{hostname}}/\"\nfile \"${{place}}\" {{\n\tstate => \"exists\",\n}}\nfor $i, $n in [{}] {{\n\tfile \"${{place}}${{n}}\" {{\n\t\tstate => \"exists\",\n\t\tcontent => \"round {round}\\n\",\n\t}}\n}}\n",
            bench.place.directory().display(),
            (0..files)
                .map(|number| format!("\"file{number}\", "))
                .collect::<String>()
        );
        let path = bench.place.write("main.mcl", program);
        let before = Instant::now();
        let (processor, counted) = (processor_time(&hosts), bench.counters());
        let mut deploy = bench.setpoint("deploy", None);
        deploy
            .args(["--no-git", "--wait", "--wait-timeout", "600"])
            .arg(path);
        let done = deploy
            .stderr(Stdio::inherit())
            .status()
            .expect("the program can be started");
        assert!(done.success(), "the deploy has failed");
        let took = before.elapsed();
        let processor = processor_time(&hosts) - processor;
        println!(
            "deploy {round}, {files} files a host: all {count} right after {:.2} s; the hosts took {:.2} s of processors, {:.0} ms each",
            took.as_secs_f64(),
            processor.as_secs_f64(),
            processor.as_secs_f64() * 1000.0 / count as f64
        );
        // Until all have said that they are right.
        std::thread::sleep(Duration::from_secs(1));
        let more = |name: &str| {
            bench.counters().get(name).copied().unwrap_or_default()
                - counted.get(name).copied().unwrap_or_default()
        };
        println!(
            "  etcd: {:.2} s of processors, {:.1} writes and {:.1} KiB sent a host",
            more("process_cpu_seconds_total"),
            more("etcd_debugging_mvcc_put_total") / count as f64,
            more("etcd_network_client_grpc_sent_bytes_total") / 1024.0 / count as f64
        );
    }
    println!(
        "etcd: {:.0} MB, of which each host is a part",
        bench
            .counters()
            .get("process_resident_memory_bytes")
            .copied()
            .unwrap_or_default()
            / 1e6
    );
    let memory: u64 = hosts.iter().map(|host| resident(host.id())).sum();
    println!("memory: {:.1} MB a host", memory as f64 / 1024.0 / count as f64);
    // Until all have said that they are right.
    std::thread::sleep(Duration::from_secs(5));
    let (before, processor) = (bench.counters(), processor_time(&hosts));
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let (after, processor) = (bench.counters(), processor_time(&hosts) - processor);
    let etcd = "process_cpu_seconds_total";
    println!(
        "idle for {seconds} s: the hosts took {:.3} s of processors in all, etcd {:.2} s; of the store, per host and minute:",
        processor.as_secs_f64(),
        after.get(etcd).copied().unwrap_or_default() - before.get(etcd).copied().unwrap_or_default()
    );
    for (name, end) in &after {
        let more = end - before.get(name).copied().unwrap_or_default();
        let is_traffic = name.starts_with("grpc_server_msg_received_total")
            || name.starts_with("grpc_server_msg_sent_total")
            || name.starts_with("etcd_network_client_grpc_")
            || name.starts_with("etcd_mvcc_put_total")
            || name.starts_with("etcd_debugging_mvcc_put_total");
        if is_traffic && more > 0.0 {
            println!("  {name}: {:.2}", more / count as f64 * 60.0 / seconds as f64);
        }
    }
    for mut host in hosts {
        let _ = host.kill();
        let _ = host.wait();
    }
}

impl Bench {
    fn member(&self, number: usize) -> Child {
        let mut command = self.setpoint("run", Some(&format!("host-{number:03}")));
        command.arg("empty").spawn().expect("the program can be started")
    }

    fn wait_until(&self, count: usize, prefix: &str) {
        while self
            .runtime
            .block_on(self.store.keys(prefix))
            .map_or(0, |keys| keys.len())
            < count
        {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The time on processors of these processes.
fn processor_time(hosts: &[Child]) -> Duration {
    let of = |host: &Child| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", host.id()))
            .into_iter()
            .flatten()
            .flatten();
        let times = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        times.sum::<u64>()
    };
    Duration::from_nanos(hosts.iter().map(of).sum())
}

/// Memory of a process in KiB.
fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
