# SPDX-License-Identifier: Apache-2.0
"""Models of KerasHub, small, with random weights. ALL has functions that make a model, its inputs and its targets."""

import keras_hub
import numpy as np

SAMPLES, WORDS, LENGTH, KINDS = 16, 50, 12, 4
LAYERS = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16}


def _ids(limit, *shape):
    return np.random.default_rng(0).integers(1, limit, (SAMPLES, *shape)).astype("int32")


def _numbers(*shape):
    return np.random.default_rng(0).standard_normal((SAMPLES, *shape)).astype("float32")


def _image_classifier(kind, **backbone):
    backbone = getattr(keras_hub.models, f"{kind}Backbone")(image_shape=(32, 32, 3), **backbone)
    model = getattr(keras_hub.models, f"{kind}ImageClassifier")(
        backbone=backbone, num_classes=KINDS, preprocessor=None, activation=None)
    return model, _numbers(32, 32, 3), _ids(KINDS)


def gpt2():
    backbone = keras_hub.models.GPT2Backbone(
        vocabulary_size=WORDS, intermediate_dim=32, max_sequence_length=LENGTH, dropout=0.0, **LAYERS)
    mask = np.ones((SAMPLES, LENGTH), "int32")
    return (keras_hub.models.GPT2CausalLM(backbone=backbone, preprocessor=None),
            {"token_ids": _ids(WORDS, LENGTH), "padding_mask": mask}, _ids(WORDS, LENGTH))


def bert():
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=WORDS, intermediate_dim=32, max_sequence_length=LENGTH, dropout=0.0, **LAYERS)
    lengths = np.random.default_rng(1).integers(3, LENGTH + 1, SAMPLES)
    inputs = {"token_ids": _ids(WORDS, LENGTH), "segment_ids": np.zeros((SAMPLES, LENGTH), "int32"),
              "padding_mask": (np.arange(LENGTH) < lengths[:, None]).astype("int32")}
    return (keras_hub.models.BertTextClassifier(backbone=backbone, num_classes=3, preprocessor=None, dropout=0.0),
            inputs, _ids(3))


def resnet():
    return _image_classifier("ResNet", input_conv_filters=[64], input_conv_kernel_sizes=[7],
                             stackwise_num_filters=[64, 128], stackwise_num_blocks=[1, 1],
                             stackwise_num_strides=[1, 2], block_type="basic_block", use_pre_activation=False)


def vit():
    return _image_classifier("ViT", patch_size=8, mlp_dim=32, dropout_rate=0.0, attention_dropout=0.0, **LAYERS)


def mobilenet():
    return _image_classifier(
        "MobileNet", stackwise_expansion=[[40, 56], [64, 144]], stackwise_num_blocks=[2, 2],
        stackwise_num_filters=[[16, 16], [24, 24]], stackwise_kernel_size=[[3, 3], [5, 5]],
        stackwise_num_strides=[[2, 1], [1, 1]], stackwise_se_ratio=[[None, None], [0.25, 0.25]],
        stackwise_activation=[["relu", "relu"], ["hard_swish", "hard_swish"]], stackwise_padding=[[1, 1], [2, 2]],
        output_num_filters=24, input_num_filters=8, input_activation="hard_swish", depthwise_filters=8,
        depthwise_stride=2, depthwise_residual=False, squeeze_and_excite=0.5, last_layer_filter=24)


def whisper():
    """Its logits are products with the table of the embedding. The inputs are not in the order of their names."""
    import keras

    backbone = keras_hub.models.WhisperBackbone(
        vocabulary_size=WORDS, intermediate_dim=32, num_mels=8, dropout=0.0, max_encoder_sequence_length=20,
        max_decoder_sequence_length=LENGTH, **LAYERS)
    inputs = {"encoder_features": _numbers(20, 8), "decoder_token_ids": _ids(WORDS, LENGTH),
              "decoder_padding_mask": np.ones((SAMPLES, LENGTH), "int32")}
    logits = backbone.token_embedding(backbone.output["decoder_sequence_output"], reverse=True)
    return keras.Model(backbone.input, logits), inputs, _ids(WORDS, LENGTH)


ALL = [whisper, gpt2, bert, resnet, vit, mobilenet]
