// Written by cellmux. Keeps one small file that says what the sessions of this
// opencode are doing, for whoever watches the slot from outside.
import { mkdirSync, renameSync, writeFileSync } from "node:fs"

const dir = SPOOL
const sessions = {}
let current = ""
let serial = 0

function entry(id) {
  return (sessions[id] ??= { status: "idle", questions: {} })
}

function write() {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    const recent = Object.fromEntries(Object.entries(sessions).slice(-16))
    const temporary = `${dir}/.opencode.${process.pid}.${serial++}`
    writeFileSync(temporary, JSON.stringify({ pid: process.pid, current, sessions: recent }), { mode: 0o600 })
    renameSync(temporary, `${dir}/opencode.json`)
  } catch {
    // A full disk must not end the agent's turn.
  }
}

const clip = (text) => String(text ?? "").slice(0, 4000)

function take(event) {
  const p = event.properties ?? {}
  const id = p.sessionID ?? p.info?.sessionID ?? p.info?.id ?? p.part?.sessionID
  if (!id) return false
  switch (event.type) {
    case "session.created":
    case "session.updated": {
      const s = entry(id)
      s.parent = p.info?.parentID ?? s.parent
      if (event.type === "session.created" && !s.parent) current = id
      return true
    }
    case "session.status": {
      const s = entry(id)
      const status = p.status?.type ?? "idle"
      if (status !== "idle" && s.status === "idle") {
        s.began = Date.now()
        s.error = ""
        if (!s.parent) current = id
      }
      if (status === "idle" && s.status !== "idle") s.ended = Date.now()
      s.status = status
      s.detail = clip(p.status?.message)
      return true
    }
    case "session.idle": {
      const s = entry(id)
      if (s.status !== "idle") s.ended = Date.now()
      s.status = "idle"
      return true
    }
    case "session.error": {
      const s = entry(id)
      if (p.error?.name === "MessageAbortedError") return false
      s.error = clip(p.error?.data?.message ?? p.error?.name)
      s.login = p.error?.name === "ProviderAuthError" || p.error?.data?.statusCode === 401
      return true
    }
    case "permission.asked":
    case "permission.updated":
      entry(id).questions[p.id] = {
        kind: clip(p.permission ?? p.type ?? p.title),
        what: clip(p.metadata?.command ?? p.metadata?.filepath ?? p.metadata?.url ?? [p.patterns ?? p.pattern ?? ""].flat().join(" ")),
        asked: Date.now(),
      }
      return true
    case "question.asked":
      entry(id).questions[p.id] = { kind: "question", what: clip(p.questions?.[0]?.question), asked: Date.now() }
      return true
    case "permission.replied":
    case "question.replied":
    case "question.rejected":
      delete entry(id).questions[p.requestID ?? p.permissionID]
      return true
    case "message.part.updated": {
      const s = entry(id)
      if (p.part?.type !== "text" || !p.part.text) return false
      if (s.roles?.[p.part.messageID] === "user") s.prompt = clip(p.part.text)
      else s.reply = clip(p.part.text)
      return false
    }
    case "message.updated": {
      const s = entry(id)
      s.roles = { [p.info?.id]: p.info?.role }
      return false
    }
  }
  return false
}

export const Cellmux = async () => {
  write()
  return {
    event: async ({ event }) => {
      if (take(event)) write()
    },
  }
}
