//! `polity watch`: the agents and the events, live. On a terminal it redraws a screen; in a pipe it prints one line per
//! event.

mod screen;

use super::events::{line, newest_event};
use super::finished::open_tasks;
use super::{At, named_task};
use crate::failure::Failure;
use crate::job;
use crate::output::Page;
use crate::remote::words::now;
use crate::signals::Interruption;
use clap::Args;
use crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, queue, terminal};
use polity_client::{Client, Followed, Side};
use polity_society::id::TaskId;
use polity_society::message::Finality;
use polity_view::{AgentFilter, AgentPage, AgentView, Entry, Event, EventFilter};
use screen::{Agents, Link, Size, State, lines};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

/// `polity watch`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    /// Show only this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
}

/// Number of past events to show at the start.
const BEFORE: u32 = 20;
/// Minimum interval between two redraws, and between two requests for the list of agents.
const PERIOD: Duration = Duration::from_millis(250);
/// The sentence about the event of a message may contain only the beginning of the message. So if a final message to
/// the user has several lines, or more characters than this, it is also printed in full below the sentence.
const SENTENCE_CHARS: usize = 80;
/// Maximum interval between two redraws. The screen shows elapsed times, so it changes even if no event arrives.
const SECOND: Duration = Duration::from_secs(1);
/// Capacity of the queue of pressed keys.
const KEYS: usize = 16;

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.at.client()?;
    let filter = EventFilter { task: named_task(&client, arguments.task).await?, ..EventFilter::default() };
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    // Print one line per event, as in a pipe, if the terminal cannot move its cursor. Do the same if this process is in
    // the background of the terminal. There, the system stops a process that changes the mode of the terminal or reads
    // keys, as the screen does.
    let on_terminal = std::io::stdout().is_terminal()
        && std::env::var_os("TERM").is_some_and(|name| name != "dumb")
        && job::is_in_foreground();
    let watched = async {
        if on_terminal { on_screen(&client, &filter).await } else { in_lines(&client, filter).await }
    };
    tokio::select! {
        watched = watched => watched.map(|()| 0),
        // Ctrl-C is the normal end of watching, so it is not a failure.
        () = interruption.happened() => Ok(0),
    }
}

/// Prints one line per event.
async fn in_lines(client: &Client, filter: EventFilter) -> Result<(), Failure> {
    let last = newest_event(client).await?;
    let recent = client.events(Side::Before(last.saturating_add(1)), BEFORE, &filter).await?;
    for entry in &recent.events {
        crate::output::show(&line(entry))?;
    }
    super::events::follow(&mut client.follow(last, filter), crate::output::Form::Text).await
}

/// The alternate screen of the terminal. Dropping this value restores the normal screen.
struct Screen;

impl Screen {
    fn open() -> std::io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Self;
        execute!(std::io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Draws lines from the top of the screen.
    fn draw(&self, lines: &[String]) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        let coloured = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        for (row, line) in (0_u16..).zip(lines) {
            queue!(stdout, cursor::MoveTo(0, row))?;
            if coloured {
                write!(stdout, "{line}")?;
            } else {
                write!(stdout, "{}", anstream::adapter::strip_str(line))?;
            }
            queue!(stdout, terminal::Clear(terminal::ClearType::UntilNewLine))?;
        }
        queue!(stdout, terminal::Clear(terminal::ClearType::FromCursorDown))?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Ignore an error: if the terminal refuses, the program can do nothing about it.
        let _ = execute!(std::io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// What the screen must do after the user has pressed a key or changed the size of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Leave,
    Up,
    Down,
    /// Draw the screen again, because its size has changed.
    Redraw,
}

fn wish(event: &TerminalEvent) -> Option<Wish> {
    match event {
        TerminalEvent::Resize(..) => Some(Wish::Redraw),
        TerminalEvent::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) => match code {
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::Leave),
            KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Leave),
            KeyCode::Up | KeyCode::Char('k') => Some(Wish::Up),
            KeyCode::Down | KeyCode::Char('j') => Some(Wish::Down),
            _ => None,
        },
        _ => None,
    }
}

/// Starts a thread that reads keys and changes of the screen size. The thread ends with the process, or when the
/// returned receiver is dropped.
fn listen_to_keys() -> mpsc::Receiver<Wish> {
    let (tell, wishes) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            if let Some(wish) = wish(&event)
                && tell.blocking_send(wish).is_err()
            {
                return;
            }
        }
    });
    wishes
}

/// What the daemon says about the agents.
struct Society {
    agents: Vec<AgentView>,
    /// The ids of all open tasks; `None` if the agents are those of one task.
    open: Option<BTreeSet<TaskId>>,
    /// The number of the newest event when the agents were read.
    as_of: i64,
}

async fn society(client: &Client, filter: &AgentFilter) -> Result<Society, polity_client::Error> {
    let AgentPage { agents, as_of, .. } = client.all_agents(filter).await?;
    let open =
        if filter.task.is_none() { Some(open_tasks(client).await?.into_iter().collect()) } else { None };
    Ok(Society { agents, open, as_of })
}

async fn on_screen(client: &Client, filter: &EventFilter) -> Result<(), Failure> {
    let agents = AgentFilter { task: filter.task.clone(), ..AgentFilter::default() };
    // Fetch the agents before the alternate screen opens, because an error message would disappear with that screen.
    let Society { agents: there, open, as_of } = society(client, &agents).await?;
    let recent = client.events(Side::Before(as_of.saturating_add(1)), BEFORE, filter).await?;
    let mut state = State::new(there, filter.task.clone());
    state.open = open;
    recent.events.iter().flat_map(|entry| told(entry, Page::now())).for_each(|line| state.happened(line));
    let mut follow = client.follow_live(as_of, filter.clone());

    let screen = Screen::open().map_err(Failure::of_output)?;
    let mut wishes = listen_to_keys();
    let mut periods = tokio::time::interval(PERIOD);
    periods.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut drawn, mut asked) = (Drawn::Old, Drawn::New);
    let mut drawn_at = Instant::now();
    // The pending request for the list of agents, if there is one. The loop handles keys and events while it waits for
    // the answer.
    let mut asking: Option<Pin<Box<_>>> = None;
    loop {
        tokio::select! {
            answer = answered(&mut asking) => {
                asking = None;
                match answer {
                    Ok(Society { agents, open, .. }) => {
                        (state.agents, state.open, drawn) = (agents, open, Drawn::Old);
                    }
                    // Ask again in the next period. If the daemon has ended, the event stream fails too, and the screen
                    // then says so.
                    Err(error) => {
                        asked = Drawn::Old;
                        tracing::debug!(%error, "failed to fetch the agents");
                    }
                }
            }
            followed = follow.next() => match followed {
                Some(Followed::Entry(entry)) => {
                    told(&entry, Page::now()).into_iter().for_each(|line| state.happened(line));
                    drawn = Drawn::Old;
                    if changes_agents(&entry.event) {
                        asked = Drawn::Old;
                    }
                }
                Some(Followed::Glimpse(glimpse)) => {
                    drawn = Drawn::Old;
                    if state.see(*glimpse) == Agents::Outdated {
                        asked = Drawn::Old;
                    }
                }
                Some(Followed::Connected) => (state.link, drawn, asked) = (Link::Up, Drawn::Old, Drawn::Old),
                Some(Followed::Lost(loss)) => (state.link, drawn) = (Link::Down(loss), Drawn::Old),
                Some(Followed::Failed(error)) => {
                    drop(screen);
                    return Err(error.into());
                }
                None => return Ok(()),
            },
            wish = wishes.recv() => match wish {
                Some(Wish::Leave) | None => return Ok(()),
                Some(Wish::Up) => (state.first, drawn) = (state.first.saturating_sub(1), Drawn::Old),
                Some(Wish::Down) => (state.first, drawn) = (state.first.saturating_add(1), Drawn::Old),
                Some(Wish::Redraw) => drawn = Drawn::Old,
            },
            _ = periods.tick() => {
                if asked == Drawn::Old && state.link == Link::Up && asking.is_none() {
                    asking = Some(Box::pin(society(client, &agents)));
                    asked = Drawn::New;
                }
                // The screen shows elapsed times, so redraw it regularly even if no event arrives.
                if drawn == Drawn::Old || drawn_at.elapsed() >= SECOND {
                    drawn_at = Instant::now();
                    let (columns, rows) = terminal::size().map_err(Failure::of_output)?;
                    let size = Size { columns: columns.into(), rows: rows.into() };
                    screen.draw(&lines(&mut state, size, now())).map_err(Failure::of_output)?;
                    drawn = Drawn::New;
                }
            }
        }
    }
}

/// Returns the lines of an event. The first line is the sentence about the event. If the event is a final message to
/// the user, and its text is too long for the sentence, the whole text follows.
fn told(entry: &Entry, page: Page) -> Vec<String> {
    const INDENT: &str = "    ";
    let mut lines = vec![line(entry)];
    if let Event::MessageAccepted { to, text, finality: Finality::Final, .. } = &entry.event
        && to.is_user()
        && (text.contains('\n') || text.chars().count() > SENTENCE_CHARS)
    {
        let page = page.narrower(INDENT.len());
        lines.extend(page.written(text).lines().map(|line| format!("{INDENT}{line}").trim_end().to_owned()));
    }
    lines
}

/// Waits for a pending request; waits forever if there is none.
async fn answered<F: Future>(asking: &mut Option<Pin<Box<F>>>) -> F::Output {
    match asking {
        Some(asking) => asking.as_mut().await,
        None => std::future::pending().await,
    }
}

/// Whether something is up to date: the screen as it is drawn, or the list of agents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drawn {
    New,
    Old,
}

/// Returns whether an event may change the list of agents.
fn changes_agents(event: &Event) -> bool {
    !matches!(
        event,
        Event::ConfigTaken { .. }
            | Event::ConfigRefused { .. }
            | Event::ArtifactStored { .. }
            | Event::ToolStarted { .. }
            | Event::ToolProgress { .. }
            | Event::ToolCalled { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;
    use polity_society::id::{AgentId, MessageId};

    #[test]
    fn a_final_text_is_shown_whole() {
        let check = |to: AgentId, text: &str, finality, expect: &[&str]| {
            let event = Event::MessageAccepted {
                task: TaskId::new("task"),
                message: MessageId::from_sequence(1),
                from: "root".to_owned(),
                to,
                message_type: "general".to_owned(),
                text: text.to_owned(),
                attachments: Vec::new(),
                in_reply_to: Vec::new(),
                finality,
            };
            let lines = told(&Entry { seq: 1, at: 0, event }, Page::Terminal { columns: 40 });
            let below: Vec<String> = lines.iter().skip(1).map(|line| without_styles(line)).collect();
            assert_eq!(below, expect);
        };
        let report = "# Done\n- one\n- two\u{1b}[2J";
        check(
            AgentId::user(),
            report,
            Finality::Final,
            &["    Done", "", "    • one", "    • two<U+001B>[2J"],
        );
        check(AgentId::user(), report, Finality::Interim, &[]);
        check(AgentId::root(), report, Finality::Final, &[]);
        check(AgentId::user(), "short", Finality::Final, &[]);
    }

    #[test]
    fn keys() {
        let check = |code, modifiers, expect| {
            assert_eq!(wish(&TerminalEvent::Key(KeyEvent::new(code, modifiers))), expect);
        };
        check(KeyCode::Char('q'), KeyModifiers::NONE, Some(Wish::Leave));
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Wish::Leave));
        check(KeyCode::Char('c'), KeyModifiers::NONE, None);
        check(KeyCode::Esc, KeyModifiers::NONE, Some(Wish::Leave));
        for code in [KeyCode::Up, KeyCode::Char('k')] {
            check(code, KeyModifiers::NONE, Some(Wish::Up));
        }
        for code in [KeyCode::Down, KeyCode::Char('j')] {
            check(code, KeyModifiers::NONE, Some(Wish::Down));
        }
        assert_eq!(wish(&TerminalEvent::Resize(1, 1)), Some(Wish::Redraw));
    }
}
