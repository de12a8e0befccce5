"""`caffe.proto`: the package that holds caffe_pb2."""
