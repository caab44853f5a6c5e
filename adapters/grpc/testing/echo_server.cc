#include "testing/echo_server.h"

#include <stdexcept>

namespace weir::grpc::testing {
namespace {

using ::grpc::CallbackServerContext;
using ::grpc::Status;
using ::grpc::StatusCode;

Words TextOf(const std::string& text) {
  Words words;
  words.set_text(text);
  return words;
}

class GatherReactor final : public ::grpc::ServerReadReactor<Words> {
 public:
  GatherReactor(Stage& stage, Words* response) : response_(response) {
    stage.Enter(TextOf("gather"), [] { return false; });
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      response_->set_text(text_);
      return Finish(Status::OK);
    }
    text_ += request_.text();
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  Words* response_;
  Words request_;
  std::string text_;
};

class RepeatReactor final : public ::grpc::ServerWriteReactor<Words> {
 public:
  RepeatReactor(Stage& stage, const Words& request)
      : left_(request.times()), response_(request) {
    stage.Enter(TextOf("repeat"), [] { return false; });
    Next();
  }
  void OnWriteDone(bool ok) override {
    ok ? Next() : Finish(Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  void Next() { left_-- > 0 ? StartWrite(&response_) : Finish(Status::OK); }

  int left_;
  Words response_;
};

class TalkReactor final : public ::grpc::ServerBidiReactor<Words, Words> {
 public:
  TalkReactor(Stage& stage, CallbackServerContext* context)
      : stage_(stage), context_(context) {
    StartRead(&words_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(Status::OK);
    stage_.Enter(words_, [this] { return context_->IsCancelled(); });
    StartWrite(&words_);
  }
  void OnWriteDone(bool ok) override {
    ok ? StartRead(&words_) : Finish(Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  Stage& stage_;
  CallbackServerContext* context_;
  Words words_;
};

}  // namespace

Status Answer(const Words& request, Words* response) {
  if (request.text() == "fail") return {StatusCode::INTERNAL, "as asked"};
  *response = request;
  return Status::OK;
}

Status SyncEcho::Say(::grpc::ServerContext* context, const Words* request,
                     Words* response) {
  stage_.Enter(*request, [&] { return context->IsCancelled(); });
  if (request->text() == "throw") throw std::runtime_error("as asked");
  return say_ ? say_(*context, *request, *response)
              : Answer(*request, response);
}

Status SyncEcho::Gather(::grpc::ServerContext*,
                        ::grpc::ServerReader<Words>* reader, Words* response) {
  stage_.Enter(TextOf("gather"), [] { return false; });
  for (Words words; reader->Read(&words);) {
    response->set_text(response->text() + words.text());
  }
  return Status::OK;
}

Status SyncEcho::Repeat(::grpc::ServerContext*, const Words* request,
                        ::grpc::ServerWriter<Words>* writer) {
  stage_.Enter(TextOf("repeat"), [] { return false; });
  for (int i = 0; i < request->times(); ++i) {
    if (!writer->Write(*request)) return Status::CANCELLED;
  }
  return Status::OK;
}

Status SyncEcho::Talk(::grpc::ServerContext* context,
                      ::grpc::ServerReaderWriter<Words, Words>* stream) {
  for (Words words; stream->Read(&words);) {
    stage_.Enter(words, [&] { return context->IsCancelled(); });
    if (!stream->Write(words)) return Status::CANCELLED;
  }
  return Status::OK;
}

::grpc::ServerUnaryReactor* CallbackEcho::Say(CallbackServerContext* context,
                                              const Words* request,
                                              Words* response) {
  stage_.Enter(*request, [&] { return context->IsCancelled(); });
  if (request->text() == "throw") throw std::runtime_error("as asked");
  auto* reactor = context->DefaultReactor();
  reactor->Finish(Answer(*request, response));
  return reactor;
}

::grpc::ServerReadReactor<Words>* CallbackEcho::Gather(CallbackServerContext*,
                                                       Words* response) {
  return new GatherReactor(stage_, response);
}

::grpc::ServerWriteReactor<Words>* CallbackEcho::Repeat(CallbackServerContext*,
                                                        const Words* request) {
  return new RepeatReactor(stage_, *request);
}

::grpc::ServerBidiReactor<Words, Words>* CallbackEcho::Talk(
    CallbackServerContext* context) {
  return new TalkReactor(stage_, context);
}

}  // namespace weir::grpc::testing
