#include "evidence/endpoint_arm.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "evidence/completion_stream.hpp"
#include "evidence/sse_parser.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/fake_server.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;
using test::delta;
using test::events;
using test::expect_error;
using test::FakeServer;
using test::kStop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> events_of(const std::string& text, std::size_t piece) {
  SseParser parser;
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    parser.push(std::string_view(text).substr(at, piece), [&](std::string_view data) { events.emplace_back(data); });
  }
  return events;
}

TEST(SseParser, ReadsEventsHoweverTheyAreCut) {
  const std::string text =
      ": ping\r\n\r\ndata: one\r\n\r\nevent: x\ndata:two\ndata: lines\n\n\ndata: \n\ndata: unfinished";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_THAT(events_of(text, piece), ElementsAre("one", "two\nlines", "")) << piece;
  }
}

TEST(CompletionStream, TimesTokensFromTheFirstToTheLast) {
  const auto start = std::chrono::steady_clock::time_point();
  const auto at = [&](int ms) { return start + std::chrono::milliseconds(ms); };
  CompletionStream stream(start, 256);
  stream.event(R"({"choices": [{"delta": {"role": "assistant", "content": ""}}]})", at(10));
  stream.event(delta("a"), at(40));
  stream.event(delta("b"), at(50));
  EXPECT_FALSE(stream.complete());
  stream.event(delta("a"), at(140));
  stream.event(kStop, at(500));
  EXPECT_TRUE(stream.complete());
  const ArmOutput output = stream.finish();
  EXPECT_EQ(output.text, "aba");
  EXPECT_THAT(output.tokens, ElementsAre(0, 1, 0));
  EXPECT_FALSE(output.tokens_are_ids);
  EXPECT_EQ(output.token_count, 3);
  EXPECT_EQ(output.finish_reason, "stop");
  EXPECT_DOUBLE_EQ(output.ttft_ms, 40.0);
  EXPECT_DOUBLE_EQ(output.decode_tokens_per_s, 20.0);
}

TEST(CompletionStream, BelievesTheServersCountOfTokens) {
  CompletionStream stream({}, 256);
  stream.event(delta("two tokens"), {});
  stream.event(kStop, {});
  stream.event(R"({"choices": [], "usage": {"completion_tokens": 7}})", {});
  stream.event("[DONE]", {});
  EXPECT_TRUE(stream.complete());
  EXPECT_EQ(stream.finish().token_count, 7);
}

TEST(CompletionStream, PassesTheServersErrorOn) {
  CompletionStream stream({}, 256);
  expect_error(
      Error::bad_value, [&] { stream.event(R"({"error": {"message": "out of memory"}})", {}); }, "out of memory");
  expect_error(
      Error::bad_value, [&] { stream.event("<html>", {}); }, "not a JSON object");
  expect_error(
      Error::bad_value, [&] { stream.event(R"({"error": )" + std::string(100'000, '['), {}); }, "not a JSON object");
  expect_error(
      Error::bad_value, [&] { stream.event(R"({"error": {"message": "two\nlines"}})", {}); }, R"("two\x0alines")");
}

TEST(CompletionStream, NeverTakesACountOfTokensThatIsNone) {
  for (const char* tokens :
       {"-5", "18446744073709551615", "9223372036854775808", "1.5", "\"7\"", "[7]", "true", "257"}) {
    CompletionStream stream({}, 256);
    stream.event(delta("a"), {});
    expect_error(
        Error::bad_value,
        [&] { stream.event(fmt::format(R"({{"choices": [], "usage": {{"completion_tokens": {}}}}})", tokens), {}); },
        "completion tokens", "expected an integer from 0 to the 256");
  }
  CompletionStream none({}, 256);
  none.event(delta("a"), {});
  none.event(kStop, {});
  none.event(R"({"usage": {"completion_tokens": 0}})", {});
  expect_error(
      Error::bad_value, [&] { none.finish(); }, "0 completion tokens");
}

TEST(CompletionStream, TakesNothingForAnAnswerThatIsNone) {
  const auto refuse = [](const std::string& event, const std::string& why) {
    SCOPED_TRACE(event);
    CompletionStream stream({}, 256);
    stream.event(delta("a"), {});
    expect_error(
        Error::bad_value, [&] { stream.event(event, {}); }, why);
    EXPECT_FALSE(stream.complete());
  };
  refuse(R"({"choices": [{"delta": {"content": 5}}]})", "\"content\" is 5, expected a text");
  refuse(R"({"choices": [{"delta": {"reasoning_content": []}}]})", "\"reasoning_content\" is an array");
  refuse(R"({"choices": [{"delta": "x"}]})", "\"delta\" is \"x\", expected an object");
  refuse(R"({"choices": 1})", "\"choices\" is 1, expected a list");
  refuse(R"({"choices": [1]})", "a choice is 1");
  refuse(R"({"choices": [{"index": 1, "delta": {"content": "b"}}]})", "choice 1, expected choice 0");
  refuse(R"({"choices": [{"index": 0}, {"index": 1}]})", "2 choices");
  refuse(R"({"choices": [{"delta": {}, "finish_reason": "wat"}]})", "finish_reason is \"wat\"");
  refuse(R"({"choices": [{"delta": {}, "finish_reason": 1}]})", "\"finish_reason\" is 1, expected a text");
  refuse(R"({"choices": [)", "not a JSON object");
  refuse(R"({"usage": 3})", "\"usage\" is 3");
  refuse(R"({"error": "no memory"})", "no memory");
  refuse(R"({"error": {"message": 7}})", "the server says: 7");
  refuse("[DONE]", "[DONE] without a finish_reason");
}

TEST(CompletionStream, RefusesMoreThanWasAskedForAndTextBehindTheEnd) {
  CompletionStream stream({}, 2);
  stream.event(delta("a"), {});
  stream.event(delta("b"), {});
  expect_error(
      Error::bad_value, [&] { stream.event(delta("c"), {}); }, "more than the 2 tokens asked for");
  stream.event(kStop, {});
  expect_error(
      Error::bad_value, [&] { stream.event(delta("c"), {}); }, "text behind its finish_reason");
}

TEST(EndpointOptions, NamesWhatIsMissingOrUnknown) {
  expect_error(
      Error::bad_argument,
      [] {
        EndpointOptions::parse({{"endpoint", "http://h/v1"}});
      },
      "no model");
  expect_error(
      Error::bad_argument,
      [] {
        EndpointOptions::parse({{"endpoint", "http://h/v1"}, {"model", "m"}, {"kv_dtype", "float32"}});
      },
      "kv_dtype", "endpoint, model");
  expect_error(
      Error::bad_argument,
      [] {
        EndpointOptions::parse({{"endpoint", "http://h/v1"}, {"model", "m"}, {"retries", -1}});
      },
      "retries=-1");
  for (const char* url :
       {"localhost:8000", "ftp://h/v1", "http://", "http:///v1", "http://h:0/v1", "http://h:x/v1", "http://[::1/v1"}) {
    expect_error(
        Error::bad_argument, [&] { EndpointArm({.endpoint = url, .model = "m"}, {}); }, url, "http://host:port/v1");
  }
}

/// A server on loopback that answers each request by the next of a list of answers; the last one stays.
/// What an arm with this server as its endpoint answers to one question.
ArmOutput ask(const FakeServer& server, int retries = 3) {
  EndpointArm arm({.endpoint = server.url(), .model = "small", .timeout_s = 5, .retries = retries},
                  {.max_tokens = 12, .sampling = {.temperature = 0.5}}, std::chrono::milliseconds(1));
  return arm.generate(std::vector<ChatMessage>{{"user", "How many?"}}, 42);
}

FakeServer::Answer status(int code, const std::string& body) {
  return [=](httplib::Response& response) {
    response.status = code;
    response.set_content(body, "application/json");
  };
}

const std::vector<std::string> kWhole = {delta("It is "), delta("\\boxed{4}"), kStop, "[DONE]"};

TEST(EndpointArm, SendsTheConversationAndReadsTheStream) {
  const FakeServer server({events(kWhole)});
  const ArmOutput output = ask(server);
  EXPECT_EQ(output.text, "It is \\boxed{4}");
  EXPECT_EQ(output.finish_reason, "stop");
  EXPECT_EQ(output.retries, 0);
  EXPECT_GT(output.ttft_ms, 0);
  const Json body = Json::parse(server.bodies().at(0));
  EXPECT_EQ(body["model"], "small");
  EXPECT_EQ(body["messages"], Json::parse(R"([{"role": "user", "content": "How many?"}])"));
  EXPECT_EQ(body["max_tokens"], 12);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["seed"], 42);
  EXPECT_EQ(body["stream"], true);
  EXPECT_FALSE(body.contains("top_k")) << "an extension that was not asked for";
}

TEST(EndpointArm, TriesAgainWhatMayPassAndSaysHowOften) {
  const FakeServer server(
      {status(503, "loading"), status(429, "slow down"), events({delta("cut off here")}), events(kWhole)});
  const ArmOutput output = ask(server);
  EXPECT_EQ(output.retries, 3);
  EXPECT_EQ(output.text, "It is \\boxed{4}");
}

TEST(EndpointArm, GivesUpAfterTheAllowedRetriesNamingTheEndpoint) {
  const FakeServer server({status(500, R"({"error": {"message": "no memory"}})")});
  expect_error(
      Error::bad_argument, [&] { ask(server, 2); }, "endpoint=" + server.url(), "status 500", "no memory", "attempt 3");
  EXPECT_EQ(server.bodies().size(), 3U);
}

/// Sends events and closes the connection without HTTP's own end of the answer.
FakeServer::Answer cut_events(const std::vector<std::string>& list) {
  return [=](httplib::Response& response) {
    response.set_chunked_content_provider("text/event-stream", [=](std::size_t, httplib::DataSink& sink) {
      for (const std::string& event : list) {
        const std::string text = "data: " + event + "\n\n";
        sink.write(text.data(), text.size());
      }
      return false;
    });
  };
}

TEST(EndpointArm, TakesAnAnswerWhoseConnectionIsClosedBehindItsLastEvent) {
  const FakeServer server({cut_events(kWhole)});
  const ArmOutput output = ask(server);
  EXPECT_EQ(output.retries, 0);
  EXPECT_EQ(output.text, "It is \\boxed{4}");
}

TEST(EndpointArm, TriesAgainWhereTheConnectionIsClosedBeforeTheUsage) {
  const FakeServer server({cut_events({delta("It is "), kStop}), events(kWhole)});
  EXPECT_EQ(ask(server).retries, 1);
}

TEST(EndpointArm, SaysThatAServerBeganAnAnswerAndSentNothing) {
  // llama-cpp-python does so when a prompt does not fit its context, and keeps the reason to its log.
  for (const auto& answer : {cut_events({}), events({})}) {
    const FakeServer server({answer});
    expect_error(
        Error::bad_argument, [&] { ask(server, 1); }, "status 200, and no event followed", "its log", "attempt 2");
  }
}

TEST(EndpointArm, DoesNotRepeatARequestThatIsWrong) {
  const FakeServer server({status(404, R"({"error": {"message": "no model small"}})")});
  expect_error(
      Error::bad_argument, [&] { ask(server); }, "status 404", "no model small", "attempt 1");
  EXPECT_EQ(server.bodies().size(), 1U);
}

TEST(EndpointArm, ShowsWhateverAServerSaysInOneLine) {
  for (const std::string& body : {R"({"error": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
                                  std::string("<p>\nno\n</p>\x1b[2J\xff"), std::string(R"({"error": [["a"]]})")}) {
    const FakeServer server({status(404, body)});
    expect_error(
        Error::bad_argument, [&] { ask(server); }, "status 404: ", ::testing::SizeIs(::testing::Lt(600)));
  }
}

TEST(EndpointArm, AFaultOfTheServerEndsTheRequestAtOnce) {
  for (const auto& list :
       std::vector<std::vector<std::string>>{{delta("a"), "[DONE]"},
                                             {delta("a"), R"({"choices": [{"delta": {}, "finish_reason": "wat"}]})"},
                                             {delta("a"), kStop, R"({"usage": {"completion_tokens": 0}})", "[DONE]"},
                                             {R"({"error": {"message": "no memory"}})"}}) {
    const FakeServer server({events(list)});
    expect_error(
        Error::bad_argument, [&] { ask(server); }, "endpoint=" + server.url(), "server", "(attempt 1)");
    EXPECT_EQ(server.bodies().size(), 1U);
  }
}

TEST(EndpointArm, NeverScoresAnAnswerThatHasNoEnd) {
  for (const auto& answer : {events({delta("\\boxed{4}")}), cut_events({delta("\\boxed{4}")})}) {
    const FakeServer server({answer});
    expect_error(
        Error::bad_argument, [&] { ask(server, 1); }, "cut off before its end", "attempt 2");
  }
}

TEST(EndpointArm, NamesAnEndpointWhereNobodyListens) {
  EndpointArm arm({.endpoint = "http://127.0.0.1:1/v1", .model = "m", .timeout_s = 1, .retries = 1}, {},
                  std::chrono::milliseconds(1));
  expect_error(
      Error::bad_argument,
      [&] {
        arm.generate(std::vector<ChatMessage>{{"user", "?"}}, 0);
      },
      "endpoint=http://127.0.0.1:1/v1", "no answer", "attempt 2");
}

TEST(EndpointArm, RecordsItsSettingsAndShowsNoPlan) {
  const EndpointArm arm({.endpoint = "http://h:1/v1", .model = "m", .timeout_s = 9, .retries = 2}, {});
  EXPECT_EQ(arm.config(), (Json{{"endpoint", "http://h:1/v1"},
                                {"model", "m"},
                                {"timeout_s", 9},
                                {"request_timeout_s", 3600},
                                {"retries", 2}}));
  EXPECT_FALSE(arm.plan());
}

}  // namespace
}  // namespace qpn8
