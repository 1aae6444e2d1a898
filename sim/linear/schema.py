"""What of Linear's published schema the simulated one knows; every name is the published one."""

from __future__ import annotations

from typing import Final

import graphql

SDL: Final = """
scalar DateTime
scalar DateTimeOrDuration
scalar JSON
scalar JSONObject

type Query {
  viewer: User!
  user(id: String!): User!
  issue(id: String!): Issue!
  agentActivity(id: String!): AgentActivity!
  agentSession(id: String!): AgentSession!
  issueRepositorySuggestions(
    issueId: String!, agentSessionId: String, candidateRepositories: [CandidateRepository!]!
  ): RepositorySuggestionsPayload!
  agentSessions(first: Int, after: String, orderBy: PaginationOrderBy): AgentSessionConnection!
}

type Mutation {
  agentActivityCreate(input: AgentActivityCreateInput!): AgentActivityPayload!
  agentSessionUpdate(id: String!, input: AgentSessionUpdateInput!): AgentSessionPayload!
  issueUpdate(id: String!, input: IssueUpdateInput!): IssuePayload!
  agentSessionCreateOnIssue(input: AgentSessionCreateOnIssue!): AgentSessionPayload!
  commentDelete(id: String!): DeletePayload!
  fileUpload(
    contentType: String!, filename: String!, makePublic: Boolean, size: Int!
  ): UploadPayload!
}

type User {
  id: ID!
  name: String!
  displayName: String!
  email: String!
  url: String!
  active: Boolean!
  guest: Boolean!
  app: Boolean!
  isAssignable: Boolean!
  isMentionable: Boolean!
  organization: Organization!
}

type Organization {
  id: ID!
  name: String!
  urlKey: String!
}

type Team {
  id: ID!
  key: String!
  name: String!
  states(filter: WorkflowStateFilter): WorkflowStateConnection!
}

type WorkflowStateConnection {
  nodes: [WorkflowState!]!
}

type WorkflowState {
  id: ID!
  name: String!
  type: String!
  position: Float!
}

type Issue {
  id: ID!
  identifier: String!
  title: String!
  description: String
  url: String!
  team: Team!
  state: WorkflowState!
  delegate: User
  assignee: User
  creator: User
  botActor: ActorBot
  parent: Issue
  comments(first: Int, last: Int): CommentConnection!
  attachments(first: Int): AttachmentConnection!
  agentSessions(first: Int): AgentSessionConnection!
}

type ActorBot {
  id: ID
}

type AttachmentConnection {
  nodes: [Attachment!]!
}

type Attachment {
  id: ID!
  title: String!
  subtitle: String
  url: String!
}

type UploadPayload { success: Boolean! uploadFile: UploadFile }

type UploadFile {
  assetUrl: String!
  contentType: String!
  filename: String!
  headers: [UploadFileHeader!]!
  size: Int!
  uploadUrl: String!
}

type UploadFileHeader { key: String! value: String! }

type CommentConnection {
  nodes: [Comment!]!
}

type Comment {
  id: ID!
  body: String!
  createdAt: DateTime!
  user: User
  documentContent: DocumentContent
  project: Project
}

type DocumentContent { content: String document: Document }
type Document { title: String! url: String! }
type Project { name: String! content: String url: String! }
type PullRequest { number: Float! title: String! url: String! }

type AgentSession {
  id: ID!
  status: AgentSessionStatus!
  createdAt: DateTime!
  updatedAt: DateTime!
  dismissedAt: DateTime
  url: String
  appUser: User!
  creator: User
  comment: Comment
  sourceComment: Comment
  issue: Issue
  pullRequest: PullRequest
  plan: JSON
  externalLinks: [AgentSessionExternalLink!]!
  activities(first: Int, last: Int, filter: AgentActivityFilter): AgentActivityConnection!
}

type AgentSessionExternalLink {
  label: String!
  url: String!
}

type AgentSessionConnection {
  nodes: [AgentSession!]!
  pageInfo: PageInfo!
}

type PageInfo {
  hasNextPage: Boolean!
  endCursor: String
}

type AgentActivityConnection {
  nodes: [AgentActivity!]!
}

type AgentActivity {
  id: ID!
  createdAt: DateTime!
  ephemeral: Boolean!
  signal: AgentActivitySignal
  user: User!
  agentSession: AgentSession!
  content: AgentActivityContent!
}

union AgentActivityContent = AgentActivityActionContent | AgentActivityElicitationContent
  | AgentActivityErrorContent | AgentActivityPromptContent | AgentActivityResponseContent
  | AgentActivityThoughtContent

type AgentActivityActionContent { action: String! parameter: String! result: String }
type AgentActivityElicitationContent { body: String! }
type AgentActivityErrorContent { body: String! }
type AgentActivityPromptContent { body: String! }
type AgentActivityResponseContent { body: String! }
type AgentActivityThoughtContent { body: String! }

type RepositorySuggestionsPayload { suggestions: [RepositorySuggestion!]! }
type RepositorySuggestion { repositoryFullName: String! hostname: String confidence: Float! }

type AgentActivityPayload { success: Boolean! agentActivity: AgentActivity! }
type AgentSessionPayload { success: Boolean! agentSession: AgentSession! }
type DeletePayload { success: Boolean! entityId: String! }
type IssuePayload { success: Boolean! issue: Issue }

enum AgentActivitySignal { auth continue select stop }
enum AgentSessionStatus { active awaitingInput complete error pending stale }
enum PaginationOrderBy { createdAt updatedAt }

input AgentActivityCreateInput {
  agentSessionId: String!
  content: JSONObject!
  ephemeral: Boolean
  id: String
  signal: AgentActivitySignal
  signalMetadata: JSONObject
}

input AgentSessionCreateOnIssue {
  issueId: String!
  externalUrls: [AgentSessionExternalUrlInput!]
}

input CandidateRepository { hostname: String! repositoryFullName: String! }

input AgentSessionUpdateInput {
  addedExternalUrls: [AgentSessionExternalUrlInput!]
  externalUrls: [AgentSessionExternalUrlInput!]
  removedExternalUrls: [String!]
  plan: JSONObject
}

input AgentSessionExternalUrlInput { label: String! url: String! }
input IssueUpdateInput { stateId: String delegateId: String }
input AgentActivityFilter { type: StringComparator createdAt: DateComparator }
input DateComparator { gte: DateTimeOrDuration }
input WorkflowStateFilter { type: StringComparator }
input StringComparator { eq: String }
"""

SCHEMA: Final = graphql.build_schema(SDL)
